"""The `kmatch` command."""

import argparse
import sys

from kmatch.cli import evaluate, export, prepare

SUBCOMMANDS = {
    "evaluate": evaluate,
    "export": export,
    "prepare": prepare,
}


def main(arguments: list[str] | None = None) -> int:
    """Runs a subcommand; bad input ends in one line instead of a traceback."""
    parser = argparse.ArgumentParser(
        prog="kmatch", description="Image-text matching for Keras 3."
    )
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, module in SUBCOMMANDS.items():
        summary = module.__doc__
        subparser = subparsers.add_parser(
            name, help=summary, description=summary
        )
        module.add_arguments(subparser)
        subparser.set_defaults(run=module.run)
    parsed = parser.parse_args(arguments)
    try:
        parsed.run(parsed)
    except (ImportError, OSError, ValueError) as error:
        print(f"kmatch: {error}", file=sys.stderr)
        return 1
    return 0
