"""The version that saved files carry."""

# Raised when a saved file can no longer be read by the code before it.
FORMAT_VERSION = 1


def check_format_version(version: int):
    """Refuses files of a later kmatch than this one."""
    if version > FORMAT_VERSION:
        raise ValueError(
            f"The file has format version {version}, and this kmatch reads "
            f"up to {FORMAT_VERSION}. Install a newer kmatch."
        )
