"""A matcher loaded from an exported SavedModel."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from kmatch.data.images import check_images, image_bytes
from kmatch.matchers.formats import check_format_version
from kmatch.matchers.progress import show_if_long
from kmatch.text.tokenizer import as_utf8

METADATA = "kmatch.json"


def versions(directory: str | os.PathLike) -> list[int]:
    """The numbers of the versions in an exported model's folder."""
    return sorted(
        int(entry.name)
        for entry in Path(directory).iterdir()
        if entry.is_dir() and entry.name.isdigit()
    )


class SavedMatcher:
    """Encodes with an exported model.

    Args:
        directory: What `kmatch.export` was given: its newest version is
            loaded; or the folder of one version.
    """

    def __init__(self, directory: str | os.PathLike):
        self.directory = _version_folder(Path(directory))
        self.embedding_dim = _embedding_dim(self.directory / METADATA)
        import tensorflow_text  # noqa: F401, the ops of the tokenizer

        self._signatures = tf.saved_model.load(self.directory).signatures

    def encode_readable_images(
        self, images: Sequence, batch_size: int = 64, progress: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Encodes those images that can be read.

        Args:
            images: As for `encode_images`.
            batch_size: Images at a time.
            progress: Whether to show a progress bar when it takes long.

        Returns:
            Their embeddings, and their indices.
        """
        images = check_images(images)
        starts = range(0, len(images), batch_size)
        rows = []
        for start in show_if_long(starts, len(starts), progress):
            batch = images[start : start + batch_size]
            rows.extend(self._encode_batch([_file(x) for x in batch]))
        readable = [i for i, row in enumerate(rows) if row is not None]
        embeddings = np.array([rows[i] for i in readable], np.float32)
        return (
            embeddings.reshape(-1, self.embedding_dim),
            np.array(readable, np.int64),
        )

    def _encode_batch(self, files):
        try:
            return list(self._encode_files(files))
        except tf.errors.InvalidArgumentError:
            # One unreadable file fails them all: halve until it stands alone.
            if len(files) == 1:
                return [None]
            half = len(files) // 2
            return [
                *self._encode_batch(files[:half]),
                *self._encode_batch(files[half:]),
            ]

    def _encode_files(self, files):
        encode = self._signatures["encode_image"]
        return encode(image_bytes=tf.constant(files))["embedding"].numpy()

    def encode_texts(
        self,
        texts: Sequence[str],
        batch_size: int = 256,
        progress: bool = True,
    ) -> np.ndarray:
        """Encodes texts: float32 `[n, embedding_dim]`, l2-normalised."""
        encode = self._signatures["encode_text"]
        texts = as_utf8(texts)
        starts = range(0, len(texts), batch_size)
        embeddings = [np.zeros([0, self.embedding_dim], np.float32)]
        for start in show_if_long(starts, len(starts), progress):
            batch = tf.constant(texts[start : start + batch_size])
            embeddings.append(encode(text=batch)["embedding"].numpy())
        return np.concatenate(embeddings)


def _file(image):
    try:
        return image_bytes(image)
    except tf.errors.OpError:
        return b""  # which no decoder takes


def _embedding_dim(file):
    try:
        metadata = json.loads(file.read_text())
        version = int(metadata["format_version"])
        dim = int(metadata["embedding_dim"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"'{file}', which describes an exported model, cannot be read "
            f"({type(error).__name__}). Export the model again."
        ) from error
    check_format_version(version)
    return dim


def _version_folder(directory):
    if (directory / METADATA).is_file():
        return directory
    numbers = versions(directory) if directory.is_dir() else []
    if not numbers:
        instead = "Pass the folder that kmatch.export was given."
        if directory.suffix == ".keras":
            instead = "Pass what keras.models.load_model makes of it."
        raise ValueError(f"'{directory}' holds no exported model. {instead}")
    return directory / str(numbers[-1])
