"""Flickr30K (Young et al., TACL 2014)."""

import os
from pathlib import Path

from kmatch.data import karpathy
from kmatch.data.caption_files import (
    join_lists,
    read_caption_table,
    read_token_file,
)
from kmatch.data.captioned import Splits
from kmatch.data.counts import report_unusual_counts, report_unusual_total
from kmatch.data.files import find, find_images, read_names

FOLDERS = ("flickr30k-images", "flickr30k_images", "images", "Images", "")
SPLIT_FILE = "dataset_flickr30k.json"
IMAGES = {"train": 29000, "val": 1014, "test": 1000}
CAPTIONS = {"train": 145000, "val": 5070, "test": 5000}
TOTAL_IMAGES = 31783

TOKEN_FILES = ("results_20130124.token", "results.token")
TABLES = ("results.csv", "captions.txt", "captions.csv")
CAPTION_FILES = TOKEN_FILES + TABLES
CAPTION_SOURCE = (
    "The captions are at https://shannon.cs.illinois.edu/DenotationGraph/."
)
LIST_SOURCE = (
    "Captions other than Karpathy's need train.txt, val.txt and test.txt, "
    "which list an image per line: take those of "
    "https://github.com/BryanPlummer/flickr30k_entities or make your own, and "
    "put them beside the captions or pass their folder as split='…'."
)


def load(
    root: str | os.PathLike, split: str | os.PathLike | None = None
) -> Splits:
    """Loads Flickr30K.

    Args:
        root: Folder with the images, in `flickr30k-images/`,
            `flickr30k_images/`, `images/`, `Images/` or beside the captions.
            These are in `dataset_flickr30k.json`, which holds Karpathy's
            split; else in `results_20130124.token`, or in the CSV that
            circulates as `results.csv` or `captions.txt`.
        split: For captions other than Karpathy's: the folder of `train.txt`,
            `val.txt` and `test.txt`, each of which lists images by name,
            with or without `.jpg`. By default they are beside the captions.

    Returns:
        In Karpathy's split, 29,000 images for training, 1,014 for validation
        and 1,000 for testing, five captions each; one label per image.
    """
    root = Path(root)
    has_captions = any((root / file).exists() for file in CAPTION_FILES)
    if split is None and ((root / SPLIT_FILE).exists() or not has_captions):
        splits = karpathy.read_splits(
            root, SPLIT_FILE, FOLDERS, {n: [n] for n in Splits._fields}
        )
        report_unusual_counts("flickr30k", splits, IMAGES, CAPTIONS)
        return splits
    splits = _read_listed(root, Path(split or root))
    report_unusual_total("flickr30k", splits, TOTAL_IMAGES)
    return splits


def _read_listed(root, lists):
    path = find(root, CAPTION_FILES, CAPTION_SOURCE)
    read = read_token_file if path.name in TOKEN_FILES else read_caption_table
    names = {
        split: [
            name if name.endswith(".jpg") else f"{name}.jpg"
            for name in read_names(find(lists, [f"{split}.txt"], LIST_SOURCE))
        ]
        for split in Splits._fields
    }
    folder = find_images(root, FOLDERS, names["train"][0])
    return join_lists("flickr30k", read(path), names, folder)
