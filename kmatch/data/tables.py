"""Own data: a table of images and captions."""

import csv
import io
import json
import os
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kmatch.data.captioned import Splits
from kmatch.data.entries import Entry, to_splits

COLUMNS = ("image", "caption", "label", "split")
# What a column may hold in a .jsonl file other than strings alone.
ALLOWED = {"caption": (str, list), "label": (str, int)}
DIVIDERS = {".csv": ",", ".tsv": "\t"}
SPLIT_NAMES = {
    "train": "train", "training": "train",
    "val": "val", "valid": "val", "validation": "val", "dev": "val",
    "test": "test", "testing": "test",
}  # fmt: skip


class Row(NamedTuple):
    """One row of a table, and where it stands."""

    line: int
    image: Path
    captions: list[str]
    label: Hashable | None
    split: str | None


def from_table(
    path: str | os.PathLike,
    columns: Mapping[str, str] | None = None,
    val: float = 0.1,
    test: float = 0.1,
    split_by: str = "image",
    seed: int = 0,
) -> Splits:
    """Loads a data set of your own from a table of images and captions.

    The table has a row per caption, with these columns:

    - `image`: path of the image, relative to the table.
    - `caption`: in `.jsonl` files it may also be a list of captions.
    - `label`, optional: anything that images which show the same have in
      common, such as the name of a person or a product. Without it, each
      image is its own.
    - `split`, optional: `train`, `val` or `test`. Without it, the images are
      split at random, all captions of an image together.

    Rows with the same image belong together; images may have any number of
    captions.

    Args:
        path: A `.csv` or `.tsv` file whose first line names the columns, or
            a `.jsonl` file with an object per line, in UTF-8.
        columns: What columns are called in the table, if other than above,
            e.g. `{"caption": "text"}`.
        val: Share of the images for validation, if split at random.
        test: Share of the images for testing, if split at random.
        split_by: `"image"`, or `"label"` for splits that have no label in
            common, if split at random.
        seed: Another seed gives another random split. It does not depend on
            the order of the rows.

    Returns:
        `Splits`. Labels are numbered: those of train are 0..C-1, others
        start at C.

    >>> import pathlib, tempfile
    >>> import kmatch
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("cat.jpg", "dog.jpg", "cow.jpg"):
    ...     _ = (folder / name).write_bytes(b"")
    >>> _ = (folder / "pairs.csv").write_text('''image,caption,split
    ... cat.jpg,a cat,train
    ... cat.jpg,a cat on a mat,train
    ... dog.jpg,"a dog, brown",val
    ... cow.jpg,a cow,test
    ... ''')
    >>> kmatch.data.from_table(folder / "pairs.csv").train
    CaptionedImages(images=1, captions=2, labels=1)
    """
    path = Path(path)
    rows = _read_rows(path, dict(columns or {}))
    entries = _join_rows(rows, path)
    split_of = {row.image: row.split for row in rows}
    if rows[0].split is None:
        split_of = _draw_splits(entries, val, test, split_by, seed, path)
    missing = set(Splits._fields) - set(split_of.values())
    if missing:
        raise ValueError(
            f"No row of '{path}' is of the split "
            f"{' or '.join(sorted(missing))}. Give each split some images, or "
            "leave the split column out for a random one."
        )
    return to_splits(
        str(path),
        {
            split: [e for e in entries if split_of[e.image] == split]
            for split in Splits._fields
        },
    )


def _read_rows(path, columns):
    unknown = set(columns) - set(COLUMNS)
    if unknown:
        raise ValueError(
            f"columns renames {', '.join(COLUMNS)}. Received: {columns}."
        )
    records = _read_records(path)
    if not records:
        raise ValueError(f"The table '{path}' has no rows.")
    present = {name for _, record in records for name in record}
    for name in COLUMNS:
        required = name in ("image", "caption") or name in columns
        column = columns.setdefault(name, name)
        if column not in present:
            if required:
                raise ValueError(
                    f"The table '{path}' has no column '{column}'. It has "
                    f"{', '.join(sorted(present))}. Rename one, or pass "
                    f"columns={{'{name}': '…'}}."
                )
            del columns[name]
    return [_row(path, line, record, columns) for line, record in records]


def _read_records(path):
    """Pairs of a line number and what the line holds by column."""
    if not path.is_file():
        raise ValueError(f"There is no table '{path}'.")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"The table '{path}' is not in UTF-8: {error}. Save it as UTF-8."
        ) from None
    if path.suffix == ".jsonl":
        return _read_objects(path, text)
    if path.suffix not in DIVIDERS:
        raise ValueError(
            f"A table is a {', '.join(DIVIDERS)} or .jsonl file. "
            f"Received: '{path}'."
        )
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=DIVIDERS[path.suffix],
        strict=True,
    )
    try:
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise ValueError(
            f"The table '{path}' is broken before line {reader.line_num + 1}: "
            f"{error}. Put quotes around values with commas, tabs or line "
            "ends, and double the quotes within."
        ) from None
    if not rows:
        return []
    names = [name.strip() for name in rows.pop(0)[1]]
    for line, row in rows:
        if len(row) != len(names):
            raise ValueError(
                f"Line {line} of '{path}' has {len(row)} values, and the "
                f"table has {len(names)} columns. Put quotes around values "
                f"with commas or tabs. Received: {row}."
            )
    return [(line, dict(zip(names, row))) for line, row in rows]


def _read_objects(path, text):
    records = []
    for line, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        try:
            record = json.loads(content)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise ValueError(
                f"Line {line} of '{path}' is not a JSON object. "
                f"Received: {content.strip()!r}."
            )
        records.append((line, record))
    return records


def _row(path, line, record, columns):
    def value(name):
        found = record.get(columns[name])
        if isinstance(found, str):
            found = found.strip()
        if found in ("", None, []):
            raise ValueError(f"Line {line} of '{path}' has no {name}.")
        if not isinstance(found, ALLOWED.get(name, str)):
            raise ValueError(
                f"Line {line} of '{path}' has a {name} of the type "
                f"{type(found).__name__}. Received: {found!r}."
            )
        return found

    captions = value("caption")
    if not isinstance(captions, list):
        captions = [captions]
    image = value("image")
    split = value("split") if "split" in columns else None
    if split is not None and split.lower() not in SPLIT_NAMES:
        raise ValueError(
            f"Line {line} of '{path}' is of the split {split!r}. A split is "
            "one of train, val, test."
        )
    return Row(
        line,
        # Two ways to write one path are one image.
        Path(os.path.normpath(path.parent / image)),
        captions,
        value("label") if "label" in columns else None,
        split and SPLIT_NAMES[split.lower()],
    )


def _join_rows(rows, path):
    """One entry per image, in order of appearance."""
    first, captions = {}, {}
    for row in rows:
        earlier = first.setdefault(row.image, row)
        for name in ("label", "split"):
            values = getattr(earlier, name), getattr(row, name)
            if values[0] != values[1]:
                raise ValueError(
                    f"The image '{row.image}' has the {name} {values[0]!r} in "
                    f"line {earlier.line} of '{path}' and {values[1]!r} in "
                    f"line {row.line}. Give all rows of an image the same."
                )
        captions.setdefault(row.image, []).extend(row.captions)
    return [
        Entry(image, captions[image], row.label) for image, row in first.items()
    ]


def _draw_splits(entries, val, test, split_by, seed, path):
    """The split of each image, at random by image or by label."""
    if split_by not in ("image", "label"):
        raise ValueError(
            f"split_by must be 'image' or 'label'. Received: {split_by!r}."
        )
    if not (val > 0 and test > 0 and val + test < 1):
        raise ValueError(
            "val and test are shares of the images that leave some for "
            f"training, such as 0.1. Received: val={val}, test={test}."
        )
    if split_by == "label":
        units = {
            e.image: e.image if e.label is None else e.label for e in entries
        }
    else:
        units = {e.image: e.image for e in entries}
    # Sorted, so that the order of the rows does not matter; relative, so that
    # the place of the table does not.
    names = sorted(set(units.values()), key=lambda unit: _relative(unit, path))
    if len(names) < len(Splits._fields):
        raise ValueError(
            f"'{path}' has {len(names)} {split_by}s, too few for three splits."
        )
    order = np.random.default_rng(seed).permutation(len(names))
    num_val = max(1, round(val * len(names)))
    num_test = max(1, round(test * len(names)))
    splits = ["val"] * num_val + ["test"] * num_test
    splits += ["train"] * (len(names) - len(splits))
    drawn = {names[i]: split for i, split in zip(order, splits)}
    return {image: drawn[unit] for image, unit in units.items()}


def _relative(unit, path):
    if isinstance(unit, Path):
        return os.path.relpath(unit, path.parent)
    return str(unit)
