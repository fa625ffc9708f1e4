"""Data sets by name."""

import importlib
import os

from kmatch.data import records
from kmatch.data.captioned import Splits

NAMES = ("shapes", "flickr8k", "flickr30k")


def load(name: str, root: str | os.PathLike | None = None) -> Splits:
    """Loads a data set's splits.

    Args:
        name: `"shapes"`, which is embedded, `"flickr8k"` or `"flickr30k"`.
        root: Folder with the data set's files, or with the records that
            `kmatch prepare` made of them; none for `"shapes"`.

    Returns:
        `Splits` with `.train`, `.val` and `.test`. Labels are unique across
        them: those of train are 0..C-1, others start at C.

    >>> import kmatch
    >>> data = kmatch.data.load("shapes")
    >>> data.train
    CaptionedImages(images=6000, captions=30000, labels=6000)
    """
    if name not in NAMES:
        raise ValueError(
            f"There is no data set '{name}'. Choose one of "
            f"{', '.join(NAMES)}, or build your own with "
            "kmatch.data.from_pairs."
        )
    if records.is_prepared(root):
        return records.load(root, name)
    return importlib.import_module(f"kmatch.data.{name}").load(root)
