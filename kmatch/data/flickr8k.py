"""Flickr8K (Hodosh, Young & Hockenmaier, JAIR 2013) in its own splits."""

import os
from pathlib import Path

from kmatch.data.caption_files import join_lists, read_token_file
from kmatch.data.captioned import Splits
from kmatch.data.counts import report_unusual_counts
from kmatch.data.files import find, read_names

SOURCE = "https://github.com/jbrownlee/Datasets/releases/tag/Flickr8k"
CAPTION_FILE = "Flickr8k.token.txt"
LISTS = {
    "train": "Flickr_8k.trainImages.txt",
    "val": "Flickr_8k.devImages.txt",
    "test": "Flickr_8k.testImages.txt",
}
# "Flicker" is how the official archive spells it.
IMAGE_FOLDERS = ("Flicker8k_Dataset", "Flickr8k_Dataset", "Images", "images")
TEXT_FOLDERS = ("", "Flickr8k_text")
IMAGES = {"train": 6000, "val": 1000, "test": 1000}
CAPTIONS = {"train": 30000, "val": 5000, "test": 5000}


def load(root: str | os.PathLike) -> Splits:
    """Loads Flickr8K from `Flickr8k.token.txt` and the three lists.

    Captions without an image and images without a split, both of which the
    official release has, are left out and reported.

    Args:
        root: Folder with the caption file, the lists
            `Flickr_8k.{train,dev,test}Images.txt` (or all four in
            `Flickr8k_text/`) and the images in `Flicker8k_Dataset/`.

    Returns:
        6,000 images for training, 1,000 for validation and 1,000 for
        testing, five captions each, one label per image.
    """
    root = Path(root)
    captions = read_token_file(_find(root, CAPTION_FILE))
    lists = {
        split: read_names(_find(root, file)) for split, file in LISTS.items()
    }
    splits = join_lists("flickr8k", captions, lists, _image_folder(root))
    report_unusual_counts("flickr8k", splits, IMAGES, CAPTIONS)
    return splits


def _find(root, file):
    return find(
        root,
        [os.path.join(folder, file) for folder in TEXT_FOLDERS],
        f"It is in Flickr8k_text.zip, which circulates at {SOURCE}; put it "
        "into the folder that holds the images.",
    )


def _image_folder(root):
    for folder in IMAGE_FOLDERS:
        if (root / folder).is_dir():
            return root / folder
    raise ValueError(
        f"The images are in none of '{root}/{{{','.join(IMAGE_FOLDERS)}}}'. "
        f"They are in Flickr8k_Dataset.zip, which circulates at {SOURCE}."
    )
