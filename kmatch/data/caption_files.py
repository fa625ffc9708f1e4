"""Caption files in which Flickr8K and Flickr30K come: token files and CSV."""

import csv
import logging
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kmatch.data.captioned import Splits
from kmatch.data.entries import Entry, split_of_each, to_splits
from kmatch.data.files import read_lines, shown

_log = logging.getLogger("kmatch")

IMAGE_COLUMNS = ("image_name", "image", "filename")
CAPTION_COLUMNS = ("comment", "caption", "caption_text")


def read_token_file(path: Path) -> dict[str, list[str]]:
    """Reads lines such as `1000092795.jpg#0<TAB>Two young guys …`.

    Returns:
        The captions of each image, by its name.
    """
    captions = {}
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        key, tab, caption = line.partition("\t")
        name, hash_sign, _ = key.rpartition("#")
        if not tab or not hash_sign:
            raise ValueError(
                f"Line {number} of '{path}' is not 'image.jpg#0', a tab and "
                f"a caption. Received: {line!r}."
            )
        captions.setdefault(name, []).append(caption)
    return captions


def read_caption_table(path: Path) -> dict[str, list[str]]:
    """Reads columns divided by `|` or `,`, whose names the first line holds.

    Returns:
        The captions of each image, by its name.
    """
    header, *lines = read_lines(path)
    divider = "|" if "|" in header else ","
    columns = [name.strip().lower() for name in header.split(divider)]
    image = _column(columns, IMAGE_COLUMNS, path)
    caption = _column(columns, CAPTION_COLUMNS, path)
    quoting = csv.QUOTE_NONE if divider == "|" else csv.QUOTE_MINIMAL
    rows = csv.reader(lines, delimiter=divider, quoting=quoting)
    captions = {}
    for row in rows:
        if not row:
            continue
        row = _whole_row(row, caption, divider)
        if len(row) <= max(image, caption):
            raise ValueError(
                f"Line {rows.line_num + 1} of '{path}' does not hold the "
                f"columns {', '.join(columns)}. Received: {row}."
            )
        captions.setdefault(row[image].strip(), []).append(row[caption].strip())
    return captions


def _whole_row(row, caption, divider):
    if len(row) > caption:
        # A divider within the caption, which comes last, belongs to it.
        return [*row[:caption], divider.join(row[caption:])]
    # The Flickr30K file that circulates lacks a divider in one line.
    mended = re.fullmatch(r"\s*(\d+)\s+(.+)", row[-1])
    return [*row[:-1], *mended.groups()] if mended else row


def _column(columns, names, path):
    for name in names:
        if name in columns:
            return columns.index(name)
    raise ValueError(
        f"The first line of '{path}' names none of the columns "
        f"{', '.join(names)}. Received: {', '.join(columns)}."
    )


def join_lists(
    name: str,
    captions: Mapping[str, Sequence[str]],
    lists: Mapping[str, Sequence[str]],
    folder: Path,
) -> Splits:
    """Joins captions with the lists of the splits' images.

    Captions without an image and images without caption or split are left
    out and reported.

    Args:
        name: The data set's.
        captions: The captions of each image, by its name.
        lists: Names of the images of `train`, `val` and `test`.
        folder: Where the images are.

    Returns:
        `Splits`, with one label per image.
    """
    listed = split_of_each(name, "image", lists)
    _report_left_out(name, captions, listed, set(os.listdir(folder)))
    return to_splits(
        name,
        {
            split: [
                Entry(folder / image, captions[image])
                for image in images
                if image in captions
            ]
            for split, images in lists.items()
        },
    )


def _report_left_out(name, captions, listed, files):
    orphaned = [i for i in captions if i not in files and i not in listed]
    if orphaned:
        _log.warning(
            "%s: left out %d captions of %d images that are not there: %s.",
            name, sum(len(captions[image]) for image in orphaned),
            len(orphaned), ", ".join(orphaned),
        )  # fmt: skip
    without_caption = [image for image in listed if image not in captions]
    if without_caption:
        _log.warning(
            "%s: left out %d images of the lists that have no caption: %s.",
            name, len(without_caption), shown(without_caption),
        )  # fmt: skip
    without_split = sorted((files & set(captions)) - set(listed))
    if without_split:
        _log.warning(
            "%s: left out %d images that are in no split: %s.",
            name, len(without_split), shown(without_split),
        )  # fmt: skip
