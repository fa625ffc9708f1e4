"""Reed's descriptions of CUB and Flowers (Reed et al., CVPR 2016).

`text_c10/` holds a folder per class and in it a file per image, with ten
captions, one per line. `trainclasses.txt`, `valclasses.txt` and
`testclasses.txt` name the classes of each split.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kmatch.data.captioned import Splits
from kmatch.data.counts import report_unusual_labels, report_unusual_total
from kmatch.data.entries import Entry, split_of_each, to_splits
from kmatch.data.files import find, find_images, read_lines, read_names

SOURCE = (
    "Captions and class lists are at https://github.com/reedscot/cvpr2016; "
    "put them into the folder that holds the images."
)
TEXT_FOLDERS = ("text_c10", "text")


def read_splits(
    name: str,
    root: Path,
    subfolder: str,
    folders: Sequence[str],
    relative_path: Callable[[str, str], Path],
    images: int,
    classes: Mapping[str, int],
) -> Splits:
    """Reads captions and class lists and finds the images.

    Args:
        name: The data set's.
        root: Folder that holds all.
        subfolder: Where below the root captions and lists may also be.
        folders: Where below the root the images may be.
        relative_path: Function of an image's class and name that gives its
            path below that folder.
        images: How many images there are known to be.
        classes: How many classes each split is known to have.

    Returns:
        `Splits`, with one label per class.
    """
    texts = find(root, _places(subfolder, *TEXT_FOLDERS), SOURCE)
    lists = {
        split: read_names(
            find(root, _places(subfolder, f"{split}classes.txt"), SOURCE)
        )
        for split in Splits._fields
    }
    _check_classes(name, lists, texts)
    found = {
        split: [
            Entry(
                relative_path(label, path.stem),
                [line.strip() for line in read_lines(path) if line.strip()],
                label,
            )
            for label in own
            for path in sorted((texts / label).glob("*.txt"))
        ]
        for split, own in lists.items()
    }
    folder = find_images(root, folders, found["train"][0].image)
    splits = to_splits(
        name,
        {
            split: [e._replace(image=folder / e.image) for e in entries]
            for split, entries in found.items()
        },
    )
    report_unusual_total(name, splits, images)
    report_unusual_labels(name, splits, "classes", classes)
    return splits


def _places(subfolder, *names):
    return [*names, *(f"{subfolder}/{name}" for name in names)]


def _check_classes(name, lists, texts):
    for label, split in split_of_each(name, "class", lists).items():
        if not (texts / label).is_dir():
            raise ValueError(
                f"{name}: there is no folder '{texts / label}' for the class "
                f"{label} of {split}classes.txt. {SOURCE}"
            )
