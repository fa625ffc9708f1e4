"""Features of a frozen image tower, computed once and kept on disk."""

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from kmatch.data.images import (
    DECODE_VERSION,
    image_identities,
    readable_images,
)
from kmatch.matchers.progress import show_if_long
from kmatch.towers.tower import Tower

_log = logging.getLogger("kmatch")

# So many images are lost at most when the extraction is killed.
_BLOCK = 1024
_BATCH = 64
_KEY_BYTES = 16


class FeatureCache:
    """Keeps what an image tower gives for images.

    In the folder there is one folder per state of the tower, named for its
    weights, its config and the way images are decoded, and in it files of
    some hundred images each: their keys, 16 bytes each, then their features,
    float32. A key stands for a file's path, size and time of change, or for
    the content of an array, and for the orientation.

    Args:
        directory: Where to keep them.
        tower: An image tower.
    """

    def __init__(self, directory: str | os.PathLike, tower: Tower):
        self.directory = Path(directory)
        self.tower = tower
        self._compute = tf.function(
            lambda images: tf.cast(tower(images, training=False), tf.float32),
            input_signature=[tf.TensorSpec(tower.input_shape)],
        )
        self._blocks: dict[Path, tuple[np.ndarray, np.ndarray]] = {}

    @property
    def folder(self) -> Path:
        """Where the features of the tower as it is now are kept."""
        return self.directory / tower_key(self.tower)

    def features(
        self, images: Sequence, mirrored: bool = False, progress: bool = True
    ) -> "Features":
        """Finds images' features, and computes those that are missing.

        Args:
            images: Paths, arrays or encoded files as `bytes`.
            mirrored: Whether to keep those of the mirrored images too.
            progress: Whether to show a progress bar when it takes long.
        """
        folder = self.folder
        identities = image_identities(images)
        keys = [
            [_key(identity, flipped) for identity in identities]
            for flipped in ([False, True] if mirrored else [False])
        ]
        known = self._read_keys(folder)
        for flipped, own in enumerate(keys):
            missing = [i for i, key in enumerate(own) if key not in known]
            if missing:
                self._extract(
                    folder, images, own, missing, bool(flipped), progress
                )
                known = self._read_keys(folder)
        places = [[known.get(key) for key in own] for own in keys]
        return Features(self, folder, places)

    def _read_keys(self, folder):
        """Where each key's features are: in which block, in which row."""
        width = _KEY_BYTES + 4 * self.tower.output_shape[1]
        known = {}
        for path in sorted(folder.glob("*.features")):
            if path not in self._blocks:
                count = path.stat().st_size // width
                keys = np.fromfile(path, f"V{_KEY_BYTES}", count)
                if path.name != _block_name(keys.tobytes()):
                    _log.warning(
                        "'%s' is damaged; its features are computed again.",
                        path,
                    )
                    path.unlink()
                    continue
                self._blocks[path] = (
                    keys,
                    np.memmap(
                        path, np.float32, "r", count * _KEY_BYTES,
                        (count, self.tower.output_shape[1]),
                    ),
                )  # fmt: skip
            keys, features = self._blocks[path]
            for row, key in enumerate(keys.tolist()):
                known[key] = features, row
        return known

    def _extract(self, folder, images, keys, missing, mirrored, progress):
        total = -(-len(missing) // _BATCH)
        dataset = readable_images(
            images, self.tower.image_size, _BATCH, missing
        )
        block_keys, block = [], []
        for index, batch in show_if_long(dataset, total, progress):
            if mirrored:
                batch = tf.image.flip_left_right(batch)
            block.append(self._compute(batch).numpy())
            block_keys.extend(keys[i] for i in index.numpy())
            if len(block_keys) >= _BLOCK:
                _write(folder, block_keys, np.concatenate(block))
                block_keys, block = [], []
        if block_keys:
            _write(folder, block_keys, np.concatenate(block))


class Features:
    """The features of one split's images, read when asked for.

    Attributes:
        readable: For each image, whether it could be read.
    """

    def __init__(self, cache: FeatureCache, folder: Path, places: list):
        self._cache = cache
        self._folder = folder
        self._places = places
        self._stale = False
        self.dim = cache.tower.output_shape[1]
        self.readable = np.array(
            [
                all(place is not None for place in orientations)
                for orientations in zip(*places)
            ]
        )

    def check(self):
        """Looks whether the tower is still the one that gave these."""
        tower = self._cache.tower
        self._stale = tower.trainable or self._cache.folder != self._folder

    def gather(
        self, images: np.ndarray, mirrored: np.ndarray | None = None
    ) -> np.ndarray:
        """Returns the features `[n, d]` of images by their indices.

        Args:
            images: Indices of readable images.
            mirrored: For each, whether of the mirrored image.
        """
        if self._stale:
            raise ValueError(
                "These batches hold features of the frozen image tower, and "
                "it has changed or is trained now. Call model.batches again."
            )
        if mirrored is None:
            mirrored = np.zeros(len(images), bool)
        rows = np.empty([len(images), self.dim], np.float32)
        for n, (image, flipped) in enumerate(zip(images, mirrored)):
            features, row = self._places[int(flipped)][image]
            rows[n] = features[row]
        return rows

    def batches(
        self, batch_size: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields the indices of readable images and their features."""
        readable = np.flatnonzero(self.readable)
        for start in range(0, len(readable), batch_size):
            index = readable[start : start + batch_size]
            yield index, self.gather(index)


def tower_key(tower: Tower) -> str:
    """Names all that an image's features depend on, but for the image."""
    digest = hashlib.blake2b(digest_size=16)
    config = json.dumps(_without_names(tower.get_config()), sort_keys=True)
    digest.update(f"{DECODE_VERSION} {config}".encode())
    for weight in tower.weights:
        value = np.ascontiguousarray(weight.numpy())
        digest.update(f"{value.dtype} {value.shape}".encode())
        digest.update(value.tobytes())
    return digest.hexdigest()


def _without_names(config):
    """Numbers the layers: Keras's names count what a process has built."""
    numbers = {}

    def collect(part):
        if isinstance(part, dict):
            if isinstance(part.get("name"), str):
                numbers.setdefault(part["name"], f"layer {len(numbers)}")
            part = part.values()
        elif not isinstance(part, (list, tuple)):
            return
        for item in part:
            collect(item)

    def replace(part):
        if isinstance(part, dict):
            return {key: replace(value) for key, value in part.items()}
        if isinstance(part, (list, tuple)):
            return [replace(item) for item in part]
        return numbers.get(part, part) if isinstance(part, str) else part

    collect(config)
    return replace(config)


def _key(identity, mirrored):
    data = identity + (b" mirrored" if mirrored else b"")
    return hashlib.blake2b(data, digest_size=_KEY_BYTES).digest()


def _write(folder, keys, features):
    """Writes a block; the file appears whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    keys = b"".join(keys)
    with tempfile.NamedTemporaryFile(
        dir=folder, prefix=".block-", delete=False
    ) as file:
        file.write(keys)
        file.write(features.astype("<f4").tobytes())
    os.chmod(file.name, 0o644)
    os.replace(file.name, folder / _block_name(keys))


def _block_name(keys):
    """Tells how many keys a block holds, and which."""
    digest = hashlib.blake2b(keys, digest_size=8).hexdigest()
    return f"{digest}.features"
