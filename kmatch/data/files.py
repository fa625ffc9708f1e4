"""Finding and reading the files that data sets come in."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path

_log = logging.getLogger("kmatch")


def find(root: Path, places: Sequence[str], source: str) -> Path:
    """Returns the first file or folder that exists.

    Args:
        root: Folder of the data set.
        places: Where below it the file or folder may be.
        source: Where to get it, for the message.
    """
    for place in places:
        if (root / place).exists():
            return root / place
    looked = ", ".join(f"'{root / place}'" for place in places)
    raise ValueError(f"There is no {looked.replace(', ', ' or ')}. {source}")


def find_images(root: Path, folders: Sequence[str], image: Path | str) -> Path:
    """Returns the first folder that holds an image.

    Args:
        root: Folder of the data set.
        folders: Where below it the images may be.
        image: Path of one of them below that folder.
    """
    for folder in folders:
        if (root / folder / image).exists():
            return root / folder
    looked = ", ".join(f"'{root / folder}'" for folder in folders)
    raise ValueError(
        f"The image '{image}' is in none of {looked}. Put the images into "
        "one of these folders."
    )


def read_lines(path: Path) -> list[str]:
    """Reads a text file's lines, without line ends and byte order mark.

    What is not UTF-8 is read as Windows-1252, and reported.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        _log.warning("'%s' is not UTF-8; read as Windows-1252.", path)
        text = path.read_text(encoding="cp1252", errors="replace")
    # Not `splitlines`, which also divides at characters that captions hold.
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def read_names(path: Path) -> list[str]:
    """Reads a list of names, one per line, each once."""
    return list(
        dict.fromkeys(line.strip() for line in read_lines(path) if line.strip())
    )


def read_json(path: Path):
    """Reads a JSON file."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise ValueError(
            f"'{path}' is not a whole JSON file: {error}. Fetch it again."
        ) from None


def shown(names: Sequence[str]) -> str:
    """The first few of many names, for a message."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
