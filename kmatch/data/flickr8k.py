"""Flickr8K (Hodosh, Young & Hockenmaier, JAIR 2013) in its own splits."""

import logging
import os
from pathlib import Path

from kmatch.data.captioned import CaptionedImages, Splits
from kmatch.data.counts import report_unusual_counts

_log = logging.getLogger("kmatch")

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


def load(root: str | os.PathLike | None = None) -> Splits:
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
    if root is None:
        raise ValueError(
            "flickr8k is read from files: pass root='…', the folder with "
            f"{CAPTION_FILE}, the three lists and the images."
        )
    root = Path(root)
    captions = _read_captions(_find(root, CAPTION_FILE))
    names = {
        split: _read_names(_find(root, file)) for split, file in LISTS.items()
    }
    folder = _image_folder(root)
    _report_left_out(captions, names, set(os.listdir(folder)))

    found, first_label = {}, 0
    for split in Splits._fields:
        captioned = [name for name in names[split] if name in captions]
        if not captioned:
            raise ValueError(
                f"No image of '{LISTS[split]}' has a caption in "
                f"'{CAPTION_FILE}'. Do the two belong together?"
            )
        found[split] = CaptionedImages(
            images=[folder / name for name in captioned],
            captions=[text for name in captioned for text in captions[name]],
            caption_image=[
                i for i, name in enumerate(captioned) for _ in captions[name]
            ],
            labels=range(first_label, first_label + len(captioned)),
        )
        first_label += len(captioned)
    splits = Splits(**found)
    report_unusual_counts("flickr8k", splits, IMAGES, CAPTIONS)
    return splits


def _find(root, file):
    for folder in TEXT_FOLDERS:
        if (root / folder / file).is_file():
            return root / folder / file
    raise ValueError(
        f"There is no '{root / file}'. It is in Flickr8k_text.zip, which "
        f"circulates at {SOURCE}; put it into the folder that holds the images."
    )


def _image_folder(root):
    for folder in IMAGE_FOLDERS:
        if (root / folder).is_dir():
            return root / folder
    raise ValueError(
        f"The images are in none of '{root}/{{{','.join(IMAGE_FOLDERS)}}}'. "
        f"They are in Flickr8k_Dataset.zip, which circulates at {SOURCE}."
    )


def _read_captions(path):
    """Reads lines such as `1000268201_693b08cb0e.jpg#0<TAB>A child …`."""
    captions = {}
    for number, line in enumerate(_lines(path), start=1):
        key, tab, caption = line.partition("\t")
        name, hash_sign, _ = key.rpartition("#")
        if not tab or not hash_sign:
            raise ValueError(
                f"Line {number} of '{path}' is not 'image.jpg#0', a tab and "
                f"a caption. Received: {line!r}."
            )
        captions.setdefault(name, []).append(caption)
    return captions


def _read_names(path):
    # Some copies of the lists repeat a name.
    return list(dict.fromkeys(line.strip() for line in _lines(path)))


def _lines(path):
    text = path.read_text(encoding="utf-8-sig")
    return [line for line in text.splitlines() if line.strip()]


def _report_left_out(captions, names, files):
    listed = {name for split in names.values() for name in split}
    orphaned = [name for name in captions if name not in files | listed]
    if orphaned:
        _log.warning(
            "flickr8k: left out %d captions of %d images that are not there: "
            "%s.", sum(len(captions[name]) for name in orphaned),
            len(orphaned), _shown(orphaned),
        )  # fmt: skip
    without_caption = sorted(listed - set(captions))
    if without_caption:
        _log.warning(
            "flickr8k: left out %d images of the lists that have no caption: "
            "%s.", len(without_caption), _shown(without_caption),
        )  # fmt: skip
    without_split = sorted((files & set(captions)) - listed)
    if without_split:
        _log.warning(
            "flickr8k: left out %d images that are in no split: %s.",
            len(without_split), _shown(without_split),
        )  # fmt: skip


def _shown(names):
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
