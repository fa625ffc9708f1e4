"""Karpathy's split files, in which Flickr30K and MSCOCO circulate.

`dataset_flickr30k.json` and `dataset_coco.json` list every image with its
split and its sentences (Karpathy & Fei-Fei, CVPR 2015).
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from kmatch.data.captioned import CaptionedImages, Splits

SOURCE = "https://cs.stanford.edu/people/karpathy/deepimagesent/"


def read_splits(
    root: str | os.PathLike,
    file: str,
    folders: Sequence[str],
    splits: Mapping[str, Sequence[str]],
) -> Splits:
    """Reads a split file and finds its images.

    Args:
        root: Folder that holds both.
        file: Name of the split file.
        folders: Where below the root the images may be.
        splits: For `train`, `val` and `test`, the file's splits to join.

    Returns:
        `Splits`, with one label per image.
    """
    root = Path(root)
    path = root / file
    if not path.is_file():
        raise ValueError(
            f"There is no '{path}'. It is in caption_datasets.zip at {SOURCE}; "
            "put it into the folder that holds the images."
        )
    entries = json.loads(path.read_text(encoding="utf-8"))["images"]
    folder = _image_folder(root, folders, entries[0])
    found, first_label = [], 0
    for name in Splits._fields:
        chosen = [e for e in entries if e["split"] in splits[name]]
        if not chosen:
            raise ValueError(f"'{path}' has no image of the {name} split.")
        found.append(_captioned(chosen, folder, first_label))
        first_label += len(chosen)
    return Splits(*found)


def _captioned(entries, folder, first_label):
    return CaptionedImages(
        images=[folder / _relative_path(entry) for entry in entries],
        captions=[s["raw"] for entry in entries for s in entry["sentences"]],
        caption_image=[
            i for i, entry in enumerate(entries) for _ in entry["sentences"]
        ],
        labels=range(first_label, first_label + len(entries)),
    )


def _relative_path(entry):
    # COCO's images are in train2014/ and val2014/.
    return Path(entry.get("filepath", ""), entry["filename"])


def _image_folder(root, folders, entry):
    for folder in folders:
        if (root / folder / _relative_path(entry)).exists():
            return root / folder
    looked = ", ".join(f"'{root / folder}'" for folder in folders)
    raise ValueError(
        f"The image '{_relative_path(entry)}' is in none of {looked}. Put the "
        "images into one of these folders."
    )
