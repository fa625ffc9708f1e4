"""Records: a data set in a few large files, each image once.

A prepared folder holds, per split, shards of TFRecords and beside each an
index. A record is a `tf.train.Example` with `image` (the encoded file),
`name`, `label`, `caption` (all of the image's) and `caption_index` (their
places in the split). The index says where in its shard each image begins, so
that images are read one by one, in any order, and never all at once.
"""

import hashlib
import json
import logging
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from kmatch.data.captioned import CaptionedImages, Splits
from kmatch.data.images import (
    StoredImages,
    decode_at_least,
    image_bytes,
    image_name,
    is_path,
)

_log = logging.getLogger("kmatch")

METADATA = "kmatch-records.json"
FORMAT_VERSION = 1
IMAGES_PER_SHARD = 1024
INDEX_KEYS = {"size", "header_crc", "unreadable", "images"}
# What comes before a record's bytes in its file, and after.
_HEADER, _FOOTER = 12, 4


class Shard(NamedTuple):
    """A shard that has been written, or was already there.

    Attributes:
        path: Its file.
        num_images: How many images it holds.
        unreadable: The names of those that no decoder takes. They are kept
            as they are.
    """

    path: Path
    num_images: int
    unreadable: list[str]


def is_prepared(root: str | os.PathLike | None) -> bool:
    """Whether a folder holds records.

    Raises:
        ValueError: If they are not finished.
    """
    if root is None:
        return False
    finished = (Path(root) / METADATA).is_file()
    if not finished and _unfinished(Path(root)).is_file():
        raise ValueError(
            f"The records in '{root}' are not finished. Run kmatch prepare "
            "again: it goes on where it was."
        )
    return finished


def prepare(
    name: str,
    splits: Splits,
    directory: str | os.PathLike,
    image_size: int | None = None,
    root: str | os.PathLike | None = None,
    options: Mapping | None = None,
    images_per_shard: int = IMAGES_PER_SHARD,
) -> Iterator[Shard]:
    """Writes a data set's records, shard by shard.

    A shard appears whole or not at all. Called again, it keeps the shards
    that are there and whole and writes the others: the bytes are those of one
    go. Once all are there, shards with unreadable images are written anew, with
    those mended since.

    Args:
        name: The data set's.
        splits: What to write.
        directory: Where to.
        image_size: Images with a longer shorter side are shrunk to this one
            and stored as JPEG; by default all files stay as they are.
        root: Folder that the images' names are relative to.
        options: What else the data set was loaded with.
        images_per_shard: How many images a file holds.

    Returns:
        An iterator over the shards; writing happens as it goes on.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    names = {
        split: _names(getattr(splits, split).images, root)
        for split in Splits._fields
    }
    metadata = {
        "format_version": FORMAT_VERSION,
        "name": name,
        "options": dict(options or {}),
        "image_size": image_size,
        "shards": {
            split: _shard_names(split, len(names[split]), images_per_shard)
            for split in Splits._fields
        },
        "content": _fingerprint(splits, names),
    }
    _begin(directory, metadata)
    return _write_shards(directory, metadata, splits, names, images_per_shard)


def _write_shards(directory, metadata, splits, names, images_per_shard):
    for split in Splits._fields:
        captions_of = _captions_of(getattr(splits, split))
        for number, shard in enumerate(metadata["shards"][split]):
            begin = number * images_per_shard
            rows = range(
                begin, min(begin + images_per_shard, len(names[split]))
            )
            yield _finished(directory, shard) or _write_shard(
                directory / shard, getattr(splits, split), names[split],
                captions_of, rows, metadata["image_size"],
            )  # fmt: skip
    _replace(directory / METADATA, _json(metadata))
    _unfinished(directory).unlink(missing_ok=True)


def load(
    root: str | os.PathLike, name: str, options: Mapping | None = None
) -> Splits:
    """Loads a prepared folder: the same splits as of the original one.

    Damaged shards are named; their images count as unreadable.

    Args:
        root: What `kmatch prepare` was given as `--out`.
        name: The data set's.
        options: Those it was prepared with, or none.
    """
    root = Path(root)
    metadata = json.loads((root / METADATA).read_text(encoding="utf-8"))
    if metadata["format_version"] > FORMAT_VERSION:
        raise ValueError(
            f"'{root}' has format version {metadata['format_version']}, and "
            f"this kmatch reads up to {FORMAT_VERSION}. Install a newer kmatch."
        )
    if metadata["name"] != name:
        raise ValueError(
            f"'{root}' holds records of '{metadata['name']}'. "
            f"Received: '{name}'."
        )
    options = {key: value for key, value in (options or {}).items() if value}
    if options and options != metadata["options"]:
        raise ValueError(
            f"'{root}' was prepared with the options {metadata['options']}. "
            f"Received: {options}. Leave them out, or prepare it anew."
        )
    return Splits(
        *(
            _load_split(root, metadata["shards"][split])
            for split in Splits._fields
        )
    )


def _load_split(root, shards):
    images, captions, labels = [], {}, []
    for shard in shards:
        index = _read_index(root / shard)
        problem = _problem(root / shard, index)
        if problem:
            _log.warning(
                "'%s' is damaged: %s. Those of its %d images that cannot be "
                "read are named when they are needed; kmatch prepare writes "
                "it again.", root / shard, problem, len(index["images"]),
            )  # fmt: skip
        for entry in index["images"]:
            for place, text in entry["captions"]:
                captions[place] = text, len(images)
            labels.append(entry["label"])
            images.append(_place(root / shard, entry))
    texts, caption_image = zip(*(captions[i] for i in range(len(captions))))
    return CaptionedImages(RecordImages(images), texts, caption_image, labels)


class _Place(NamedTuple):
    shard: str
    offset: int
    length: int
    crc: int
    name: str


def _place(shard, entry):
    keys = ("offset", "length", "crc", "name")
    return _Place(str(shard), *(entry[key] for key in keys))


class RecordImages(StoredImages):
    """Images in shards, read when asked for.

    What is damaged reads as empty, which no decoder takes: it is counted and
    named like any other unreadable image.
    """

    def __init__(self, places: Sequence[_Place]):
        self._places = list(places)

    def __len__(self):
        return len(self._places)

    def read(self, index: int) -> bytes:
        place = self._places[index]
        try:
            with open(place.shard, "rb") as file:
                file.seek(place.offset)
                data = file.read(place.length)
        except OSError:
            return b""
        return data if zlib.crc32(data) == place.crc else b""

    def name(self, index: int) -> str:
        place = self._places[index]
        return f"'{place.name}' in '{place.shard}'"

    def identity(self, index: int) -> bytes:
        place = self._places[index]
        return f"{place.name} {place.length} {place.crc}".encode()


def _names(images, root):
    if isinstance(images, StoredImages) or not is_path(images[0]):
        return [image_name(images, i) for i in range(len(images))]
    if root is None:
        return [str(path) for path in images]
    return [os.path.relpath(path, root) for path in images]


def _shard_names(split, num_images, images_per_shard):
    count = -(-num_images // images_per_shard)
    return [f"{split}-{i:05}-of-{count:05}.tfrecord" for i in range(count)]


def _fingerprint(splits, names):
    digest = hashlib.blake2b(digest_size=16)
    for split in Splits._fields:
        own = getattr(splits, split)
        digest.update(_json([names[split], own.captions]).encode())
        for column in (own.labels, own.caption_image):
            digest.update(np.asarray(column, "<i8").tobytes())
    return digest.hexdigest()


def _captions_of(split):
    captions = [[] for _ in range(len(split.images))]
    for place, image in enumerate(split.caption_image):
        captions[image].append(place)
    return captions


def _unfinished(directory):
    return directory / f".unfinished-{METADATA}"


def _begin(directory, metadata):
    """Makes sure that what is there already belongs to the same records."""
    text = _json(metadata)
    for path in (directory / METADATA, _unfinished(directory)):
        if path.exists() and path.read_text(encoding="utf-8") != text:
            raise ValueError(
                f"'{directory}' holds records of other data or of other "
                "settings. Choose another folder, or delete it."
            )
    if not (directory / METADATA).exists():
        _replace(_unfinished(directory), text)


def _finished(directory, shard):
    """Returns a shard that is there and whole, else None.

    Once all are, those with unreadable images are to be written anew.
    """
    path = directory / shard
    anew = (directory / METADATA).exists()
    try:
        index = _read_index(path)
    except ValueError:
        return None
    if index["unreadable"] and anew:
        return None
    if _problem(path, index) or _altered(path):
        return None
    return Shard(path, len(index["images"]), index["unreadable"])


def _altered(path):
    """Whether a shard's bytes are others than were written."""
    try:
        for _ in tf.data.TFRecordDataset(str(path)):
            pass
    except tf.errors.DataLossError:
        return True
    return False


def _problem(path, index):
    """What is wrong with a shard, or None."""
    if not path.exists():
        return "it is missing"
    size = path.stat().st_size
    if size != index["size"]:
        return f"it has {size} bytes instead of {index['size']}"
    with open(path, "rb") as file:
        if zlib.crc32(file.read(_HEADER)) != index["header_crc"]:
            return "it is not the TFRecord file that was written"
    return None


def _index_path(path):
    return path.with_suffix(".json")


def _read_index(path):
    try:
        index = json.loads(_index_path(path).read_text(encoding="utf-8"))
        if INDEX_KEYS <= set(index):
            return index
    except (OSError, ValueError):
        pass
    raise ValueError(
        f"'{_index_path(path)}' cannot be read. Run kmatch prepare again: it "
        "writes what is missing."
    )


def _write_shard(path, split, names, captions_of, rows, image_size):
    entries, unreadable = [], []
    temporary = path.with_name(f".{path.name}")
    position = 0
    with tf.io.TFRecordWriter(str(temporary)) as writer:
        for row, (data, readable) in zip(
            rows, _encoded(split.images, rows, image_size)
        ):
            captions = [(i, split.captions[i]) for i in captions_of[row]]
            label = int(split.labels[row])
            record = _record(names[row], data, label, captions)
            writer.write(record)
            entries.append(
                {
                    "name": names[row],
                    "label": label,
                    "offset": position + _HEADER + record.index(data),
                    "length": len(data),
                    "crc": zlib.crc32(data),
                    "captions": captions,
                }
            )
            position += _HEADER + len(record) + _FOOTER
            if not readable:
                unreadable.append(names[row])
    with open(temporary, "rb") as file:
        header_crc = zlib.crc32(file.read(_HEADER))
    os.replace(temporary, path)
    # The index last: without it, a shard counts as not written.
    index = {
        "size": position,
        "header_crc": header_crc,
        "unreadable": unreadable,
        "images": entries,
    }
    _replace(_index_path(path), _json(index))
    return Shard(path, len(entries), unreadable)


def _encoded(images, rows, image_size):
    """Yields each image's bytes and whether they can be decoded."""

    def encode(row):
        try:
            data = image_bytes(images[row])
        except tf.errors.OpError:
            return b"", False
        try:
            image = decode_at_least(tf.constant(data), image_size or 1)
        except tf.errors.InvalidArgumentError:
            return data, False
        if image_size is not None and min(image.shape[:2]) >= image_size:
            data = min(_shrunk(image, image_size), data, key=len)
        return data, True

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(encode, rows)


def _shrunk(image, image_size):
    """A JPEG file whose shorter side has this size."""
    height, width = image.shape[:2]
    scale = image_size / min(height, width)
    size = [round(height * scale), round(width * scale)]
    image = tf.image.resize(image, size, antialias=True)
    image = tf.cast(tf.clip_by_value(tf.round(image), 0, 255), tf.uint8)
    return tf.io.encode_jpeg(image, quality=95).numpy()


def _record(name, data, label, captions):
    def strings(values):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))

    def numbers(values):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    example = tf.train.Example(
        features=tf.train.Features(
            feature={
                "image": strings([data]),
                "name": strings([name.encode()]),
                "label": numbers([label]),
                "caption": strings([text.encode() for _, text in captions]),
                "caption_index": numbers([place for place, _ in captions]),
            }
        )
    )
    # Otherwise its fields come in any order, and bytes differ between runs.
    return example.SerializeToString(deterministic=True)


def _json(value):
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _replace(path, text):
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
