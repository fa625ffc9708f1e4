"""What TensorBoard shows of a training: figures, and at the end a gallery."""

import os

import numpy as np
import tensorflow as tf

from kmatch.data.images import decode_image, image_bytes
from kmatch.retrieval.examples import KINDS, Example, examples
from kmatch.retrieval.protocols import DIRECTIONS

SIZE = 128
_FRAME = 5
_HIT, _MISS = (31, 138, 76), (194, 65, 58)


class Board:
    """Writes event files.

    Args:
        log_dir: Where they go.
    """

    def __init__(self, log_dir: str | os.PathLike):
        self._log_dir = os.fspath(log_dir)
        # Tried now, not after the first epoch.
        if os.path.isfile(self._log_dir):
            raise ValueError(
                f"Events go into a folder, and '{self._log_dir}' is a file."
            )
        tf.io.gfile.makedirs(self._log_dir)
        self._writer = None
        self._last = None
        self._step = 0

    def write_figures(self, figures: dict[str, float], epoch: int):
        """Writes an epoch's figures."""
        if self._writer is None:
            self._writer = tf.summary.create_file_writer(self._log_dir)
        self._step = epoch
        with self._writer.as_default(step=epoch):
            for name, value in figures.items():
                tf.summary.scalar(name, value)
        self._writer.flush()

    def keep(self, *last):
        """Remembers what the last epoch found."""
        self._last = last

    def write_gallery(self):
        """Writes queries with their results, failures first."""
        if self._last is None:
            return
        split, kept, embedded, measured = self._last

        def image(index):
            return _picture(split.images[kept.images[index]])

        def caption(index):
            return split.captions[kept.captions[index]]

        with self._writer.as_default(step=self._step):
            for direction in DIRECTIONS:
                found = getattr(measured, direction)
                for number, example in enumerate(
                    examples(embedded, found, direction, count=2), start=1
                ):
                    name = (
                        f"gallery {DIRECTIONS[direction]}/"
                        f"{KINDS[example.kind].lower()} {number}"
                    )
                    if direction == "t2i":
                        strip = [
                            _framed(image(i), _HIT if hit else _MISS)
                            for i, hit in zip(example.results, example.hits)
                        ]
                        words = caption(example.query)
                    else:
                        strip = [image(example.query)]
                        words = _list(example, caption)
                    tf.summary.image(
                        name,
                        np.concatenate(strip, axis=1)[np.newaxis],
                        description=words,
                    )
        self._writer.flush()
        self._last = None


def _picture(image):
    resized = decode_image(tf.constant(image_bytes(image)), SIZE)
    return np.clip(np.round(resized), 0, 255).astype(np.uint8)


def _framed(picture, color):
    framed = np.full_like(picture, color)
    inner = slice(_FRAME, -_FRAME)
    framed[inner, inner] = picture[inner, inner]
    return framed


def _list(example: Example, caption) -> str:
    return "\n".join(
        f"1. {'✓' if hit else '✗'} {caption(i)}"
        for i, hit in zip(example.results, example.hits)
    )
