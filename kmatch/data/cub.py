"""Caltech-UCSD Birds (Wah et al., 2011) with Reed's captions."""

import os
from pathlib import Path

from kmatch.data import reed
from kmatch.data.captioned import Splits

FOLDERS = ("CUB_200_2011/images", "images")
IMAGES = 11788
CLASSES = {"train": 100, "val": 50, "test": 50}


def load(root: str | os.PathLike) -> Splits:
    """Loads CUB, split by class.

    Args:
        root: Folder with the images in `CUB_200_2011/images/` or `images/`,
            the captions in `text_c10/` and `trainclasses.txt`,
            `valclasses.txt` and `testclasses.txt`; captions and lists may
            also be in `cvpr2016_cub/`. The images are at
            https://www.vision.caltech.edu/datasets/cub_200_2011/, the rest
            at https://github.com/reedscot/cvpr2016.

    Returns:
        11,788 images, ten captions each: 100 classes for training, 50
        others for validation and 50 others for testing; one label per class.
    """
    return reed.read_splits(
        "cub", Path(root), "cvpr2016_cub", FOLDERS,
        lambda label, name: Path(label, f"{name}.jpg"),
        IMAGES, CLASSES,
    )  # fmt: skip
