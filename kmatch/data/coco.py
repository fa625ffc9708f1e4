"""MSCOCO captions (Chen et al., 2015)."""

import logging
import os
from pathlib import Path

from kmatch.data import karpathy
from kmatch.data.captioned import Splits
from kmatch.data.counts import report_unusual_counts, report_unusual_total
from kmatch.data.entries import Entry, to_splits
from kmatch.data.files import find, find_images, read_json

_log = logging.getLogger("kmatch")

FOLDERS = ("", "images", "coco")
SPLIT_FILE = "dataset_coco.json"
IMAGES = {"train": 82783, "val": 5000, "test": 5000}
CAPTIONS = {"train": 414113, "val": 25010, "test": 25010}
RESTVAL_IMAGES, RESTVAL_CAPTIONS = 30504, 152634

YEARS = (2014, 2017)
CAPTION_FOLDERS = ("annotations", "")
SOURCE = (
    "The official captions and images are at "
    "https://cocodataset.org/#download. Karpathy's split file has captions "
    "and split in one. " + karpathy.SOURCE
)
TOTAL_IMAGES = 123287
HELD_OUT = 5000


def load(root: str | os.PathLike, restval: bool = False) -> Splits:
    """Loads MSCOCO from Karpathy's split file or the official captions.

    Args:
        root: Folder with the images in `train2014/` and `val2014/`, here or
            in `images/`, and `dataset_coco.json`; else the official
            `captions_train2014.json` and `captions_val2014.json`, or those
            of 2017, here or in `annotations/`.
        restval: Whether to train on those images of val2014 too that are in
            neither the validation nor the test split.

    Returns:
        In Karpathy's split, 82,783 images for training (113,287 with
        `restval`), 5,000 for validation and 5,000 for testing, five to seven
        captions each; one label per image. The official files have no test
        captions: there, the first 5,000 images of val2014 by number are for
        validation and the next 5,000 for testing (of val2017, 2,500 each),
        and figures do not compare with those of the papers.
    """
    root = Path(root)
    if not (root / SPLIT_FILE).exists():
        return _load_official(root, restval)
    train = ["train", "restval"] if restval else ["train"]
    splits = karpathy.read_splits(
        root, SPLIT_FILE, FOLDERS,
        {"train": train, "val": ["val"], "test": ["test"]},
    )  # fmt: skip
    images, captions = dict(IMAGES), dict(CAPTIONS)
    if restval:
        images["train"] += RESTVAL_IMAGES
        captions["train"] += RESTVAL_CAPTIONS
    report_unusual_counts("coco", splits, images, captions)
    return splits


def _load_official(root, restval):
    train_file, val_file = _official_files(root)
    train = _read_official(root, train_file)
    held_out = _read_official(root, val_file)
    size = min(HELD_OUT, len(held_out) // 2)
    rest = held_out[2 * size :]
    splits = to_splits(
        "coco",
        {
            "train": train + rest if restval else train,
            "val": held_out[:size],
            "test": held_out[size : 2 * size],
        },
    )
    _log.warning(
        "coco: without '%s', the splits for validation and testing are taken "
        "from %s by number; figures do not compare with those of the papers.",
        root / SPLIT_FILE, val_file.name,
    )  # fmt: skip
    left_out = 0 if restval else len(rest)
    report_unusual_total("coco", splits, TOTAL_IMAGES - left_out)
    return splits


def _official_files(root):
    """The caption files of 2014 or, where these are not, of 2017."""
    places = [
        os.path.join(folder, f"captions_train{year}.json")
        for year in YEARS
        for folder in CAPTION_FOLDERS
    ]
    train = find(root, [*places, SPLIT_FILE], SOURCE)
    val = train.name.replace("train", "val")
    return train, find(train.parent, [val], SOURCE)


def _read_official(root, path):
    """Reads a file of images and annotations; images in order of number."""
    content = read_json(path)
    captions = {}
    for annotation in content["annotations"]:
        captions.setdefault(annotation["image_id"], []).append(
            annotation["caption"]
        )
    images = sorted(content["images"], key=lambda image: image["id"])
    # captions_val2014.json describes the images in val2014/.
    below = path.stem.removeprefix("captions_")
    folder = find_images(root, FOLDERS, Path(below, images[0]["file_name"]))
    return [
        Entry(
            folder / below / image["file_name"], captions.get(image["id"], [])
        )
        for image in images
    ]
