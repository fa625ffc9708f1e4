"""From what a loader read to a data set's splits."""

import logging
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kmatch.data.captioned import CaptionedImages, Splits
from kmatch.data.files import shown

_log = logging.getLogger("kmatch")


class Entry(NamedTuple):
    """One image of a data set.

    Attributes:
        image: Path of its file.
        captions: Its captions.
        label: Anything that images of one person or class have in common;
            None where each image is its own.
    """

    image: Path
    captions: Sequence[str]
    label: Hashable | None = None


def split_of_each(
    name: str, kind: str, lists: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Gives the split of each thing that is listed; none may be in two.

    Args:
        name: What to call the data set in messages.
        kind: What the lists hold: `"image"` or `"class"`.
        lists: What `train`, `val` and `test` hold.
    """
    splits = {}
    for split, listed in lists.items():
        for item in listed:
            if splits.setdefault(item, split) != split:
                raise ValueError(
                    f"{name}: the {kind} {item} is listed for {splits[item]} "
                    f"and for {split}. Splits have none in common: take it "
                    "out of one of the lists."
                )
    return splits


def to_splits(name: str, entries: Mapping[str, Sequence[Entry]]) -> Splits:
    """Numbers the labels and builds the splits.

    Labels are numbered as they appear, those of train first: train has
    0..C-1, and labels that are not in train start at C. Images without a
    caption are left out and reported.

    Args:
        name: What to call the data set in messages.
        entries: The entries of `train`, `val` and `test`.
    """
    numbers = {}
    found = {}
    bare = []
    for split in Splits._fields:
        chosen = [entry for entry in entries[split] if entry.captions]
        bare += [e.image.name for e in entries[split] if not e.captions]
        if not chosen:
            raise ValueError(f"{name}: there is no image of the {split} split.")
        labels = [
            numbers.setdefault(
                entry.image if entry.label is None else (entry.label,),
                len(numbers),
            )
            for entry in chosen
        ]
        found[split] = CaptionedImages(
            images=[entry.image for entry in chosen],
            captions=[text for entry in chosen for text in entry.captions],
            caption_image=[
                i for i, entry in enumerate(chosen) for _ in entry.captions
            ],
            labels=labels,
        )
    if bare:
        _log.warning(
            "%s: left out %d images without caption: %s.",
            name, len(bare), shown(bare),
        )  # fmt: skip
    return Splits(**found)
