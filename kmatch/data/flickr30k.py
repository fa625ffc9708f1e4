"""Flickr30K (Young et al., TACL 2014) in Karpathy's splits."""

import os

from kmatch.data.captioned import Splits
from kmatch.data.counts import report_unusual_counts
from kmatch.data.karpathy import read_splits

FOLDERS = ("flickr30k-images", "flickr30k_images", "images", "")
IMAGES = {"train": 29000, "val": 1014, "test": 1000}
CAPTIONS = {"train": 145000, "val": 5070, "test": 5000}


def load(root: str | os.PathLike | None = None) -> Splits:
    """Loads Flickr30K from `dataset_flickr30k.json` and its images.

    Args:
        root: Folder with the split file and the images, these in
            `flickr30k-images/`, `flickr30k_images/`, `images/` or beside it.

    Returns:
        29,000 images for training, 1,014 for validation and 1,000 for
        testing, five captions each, one label per image.
    """
    if root is None:
        raise ValueError(
            "flickr30k is read from files: pass root='…', the folder with "
            "dataset_flickr30k.json and the images."
        )
    splits = read_splits(
        root,
        "dataset_flickr30k.json",
        FOLDERS,
        {"train": ["train"], "val": ["val"], "test": ["test"]},
    )
    report_unusual_counts("flickr30k", splits, IMAGES, CAPTIONS)
    return splits
