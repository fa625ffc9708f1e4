"""Data sets by name."""

import importlib
import os

from kmatch.data import records
from kmatch.data.captioned import Splits

# What the folder of each holds.
FILES = {
    "shapes": "nothing: it is embedded",
    "flickr8k": "Flickr8k.token.txt, the three lists and the images",
    "flickr30k": "dataset_flickr30k.json and the images",
    "coco": "dataset_coco.json and the images in train2014/ and val2014/",
    "cuhk_pedes": "reid_raw.json and the images in imgs/",
    "cub": "text_c10/, the class lists and the images in CUB_200_2011/images/",
    "flowers": "text_c10/, the class lists and the images in jpg/",
}
NAMES = tuple(FILES)


def load(name: str, root: str | os.PathLike | None = None, **options) -> Splits:
    """Loads a data set's splits.

    Args:
        name: `"shapes"`, which is embedded, `"flickr8k"`, `"flickr30k"`,
            `"coco"`, `"cuhk_pedes"`, `"cub"` or `"flowers"`.
        root: Folder with the data set's files, or with the records that
            `kmatch prepare` made of them; none for `"shapes"`.
        **options: What the data set's own `load` takes beside its folder,
            such as `restval=True` for `"coco"`.

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
            f"{', '.join(NAMES)}, or load your own with "
            "kmatch.data.from_table or kmatch.data.from_pairs."
        )
    if root is None and name != "shapes":
        raise ValueError(
            f"{name} is read from files: pass root='…', the folder with "
            f"{FILES[name]}."
        )
    if records.is_prepared(root):
        return records.load(root, name, options)
    return importlib.import_module(f"kmatch.data.{name}").load(root, **options)
