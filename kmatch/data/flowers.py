"""Oxford-102 Flowers (Nilsback & Zisserman, 2008) with Reed's captions."""

import os
from pathlib import Path

from kmatch.data import reed
from kmatch.data.captioned import Splits

FOLDERS = ("jpg", "images")
IMAGES = 8189
CLASSES = {"train": 62, "val": 20, "test": 20}


def load(root: str | os.PathLike) -> Splits:
    """Loads Oxford-102 Flowers, split by class.

    Args:
        root: Folder with the images in `jpg/` or `images/`, the captions in
            `text_c10/` and `trainclasses.txt`, `valclasses.txt` and
            `testclasses.txt`; captions and lists may also be in
            `cvpr2016_flowers/`. The images are at
            https://www.robots.ox.ac.uk/~vgg/data/flowers/102/, the rest at
            https://github.com/reedscot/cvpr2016.

    Returns:
        8,189 images, ten captions each: 62 classes for training, 20 others
        for validation and 20 others for testing; one label per class.
    """
    return reed.read_splits(
        "flowers", Path(root), "cvpr2016_flowers", FOLDERS,
        lambda label, name: Path(f"{name}.jpg"),
        IMAGES, CLASSES,
    )  # fmt: skip
