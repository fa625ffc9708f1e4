"""CUHK-PEDES: person search (Li et al., CVPR 2017)."""

import os
from pathlib import Path

from kmatch.data.captioned import Splits
from kmatch.data.counts import report_unusual_counts, report_unusual_labels
from kmatch.data.entries import Entry, to_splits
from kmatch.data.files import find, find_images, read_json

FILES = ("reid_raw.json", "caption_all.json")
FOLDERS = ("imgs", "CUHK-PEDES/imgs", "")
SOURCE = (
    "The authors send it on request: "
    "https://github.com/ShuangLI59/"
    "Person-Search-with-Natural-Language-Description."
)
IMAGES = {"train": 34054, "val": 3078, "test": 3074}
CAPTIONS = {"train": 68126, "val": 6158, "test": 6156}
PERSONS = {"train": 11003, "val": 1000, "test": 1000}


def load(root: str | os.PathLike) -> Splits:
    """Loads CUHK-PEDES, split by person.

    Args:
        root: Folder with the images in `imgs/` and `reid_raw.json`, which
            names each image's split; else `caption_all.json`, which does
            not: there, persons are split by their number.

    Returns:
        34,054 images of 11,003 persons for training, 3,078 of 1,000 others
        for validation and 3,074 of 1,000 others for testing, mostly two
        captions each; one label per person, 0 to 11,002 in training.
    """
    root = Path(root)
    path = find(root, FILES, SOURCE)
    people = read_json(path)
    split_of = _own_splits(people, path)
    folder = find_images(root, FOLDERS, people[0]["file_path"])
    found = {name: [] for name in Splits._fields}
    for entry in sorted(people, key=lambda entry: entry["id"]):
        found[split_of[entry["id"]]].append(
            Entry(folder / entry["file_path"], entry["captions"], entry["id"])
        )
    splits = to_splits("cuhk_pedes", found)
    report_unusual_counts("cuhk_pedes", splits, IMAGES, CAPTIONS)
    report_unusual_labels("cuhk_pedes", splits, "persons", PERSONS)
    return splits


def _own_splits(people, path):
    """The split of each person."""
    if "split" not in people[0]:
        return _splits_by_number({entry["id"] for entry in people})
    split_of = {}
    for entry in people:
        split = entry["split"]
        if split_of.setdefault(entry["id"], split) != split:
            raise ValueError(
                f"'{path}' has images of person {entry['id']} in the splits "
                f"{split_of[entry['id']]} and {split}. Splits are by person: "
                "is this the original file?"
            )
    return split_of


def _splits_by_number(ids):
    # In the official split the last thousand persons are for testing, and
    # those before them for validation.
    held_out = -(-len(ids) * PERSONS["test"] // sum(PERSONS.values()))
    split_of = dict.fromkeys(sorted(ids), "train")
    for split, begin in (("val", 2 * held_out), ("test", held_out)):
        for person in sorted(ids)[len(ids) - begin :]:
            split_of[person] = split
    return split_of
