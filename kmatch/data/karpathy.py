"""Karpathy's split files, in which Flickr30K and MSCOCO circulate.

`dataset_flickr30k.json` and `dataset_coco.json` list every image with its
split and its sentences (Karpathy & Fei-Fei, CVPR 2015).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kmatch.data.captioned import Splits
from kmatch.data.entries import Entry, to_splits
from kmatch.data.files import find, find_images, read_json

SOURCE = (
    "It is in caption_datasets.zip at "
    "https://cs.stanford.edu/people/karpathy/deepimagesent/; put it into the "
    "folder that holds the images."
)


def read_splits(
    root: Path,
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
    images = read_json(find(root, [file], SOURCE))["images"]
    folder = find_images(root, folders, _relative_path(images[0]))
    return to_splits(
        file,
        {
            name: [
                Entry(
                    folder / _relative_path(image),
                    [sentence["raw"] for sentence in image["sentences"]],
                )
                for image in images
                if image["split"] in joined
            ]
            for name, joined in splits.items()
        },
    )


def _relative_path(image):
    # COCO's images are in train2014/ and val2014/.
    return Path(image.get("filepath", ""), image["filename"])
