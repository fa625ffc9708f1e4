"""The `kmatch` command, one file per subcommand."""
