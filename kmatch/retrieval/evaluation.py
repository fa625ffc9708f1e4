"""Evaluation of a matcher on a split."""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from kmatch.data.captioned import CaptionedImages
from kmatch.data.images import image_name
from kmatch.matchers import Matcher, SavedMatcher
from kmatch.retrieval.measures import metrics

_log = logging.getLogger("kmatch")

DIRECTIONS = {"i2t": "Image-to-Text", "t2i": "Text-to-Image"}


class Report(Mapping):
    """Retrieval metrics, as fractions; prints as the papers' table.

    Args:
        metrics: What `kmatch.retrieval.metrics` gave.
        ks: The K of its R@K.
        num_images: Size of the image gallery.
        num_captions: Size of the caption gallery.

    >>> import kmatch
    >>> x = [[1.0, 0.0], [0.0, 1.0]]
    >>> report = kmatch.evaluate((x, x), labels=([0, 1], [0, 1]), ks=(1,))
    >>> report["i2t_r1"]
    1.0
    >>> print(report)
    2 images, 2 captions      Image-to-Text   Text-to-Image
                                        R@1             R@1
    kmatch                            100.0           100.0
    """

    def __init__(
        self,
        metrics: Mapping[str, float],
        ks: Sequence[int],
        num_images: int,
        num_captions: int,
    ):
        self._metrics = dict(metrics)
        self.ks = tuple(ks)
        self.num_images = num_images
        self.num_captions = num_captions

    def __getitem__(self, name: str) -> float:
        return self._metrics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)

    def __repr__(self):
        return f"Report({self._metrics})"

    def __str__(self):
        return self.table({})

    def table(self, others: Mapping[str, Mapping[str, float]]) -> str:
        """Returns the metrics in percent, with others' rows to compare.

        Args:
            others: By name, metrics as fractions; missing ones show as "-".
        """
        size = f"{self.num_images} images, {self.num_captions} captions"
        rows = {"kmatch": self, **others}
        names = max(map(len, [size, *rows])) + 3
        width = max(6 * len(self.ks), len(DIRECTIONS["i2t"])) + 3
        lines = [size.ljust(names), "".ljust(names)]
        for title in DIRECTIONS.values():
            lines[0] += title.rjust(width)
            lines[1] += _cells([f"R@{k}" for k in self.ks], width)
        for name, row in rows.items():
            line = name.ljust(names)
            for direction in DIRECTIONS:
                keys = [f"{direction}_r{k}" for k in self.ks]
                line += _cells(
                    [f"{row[k] * 100:.1f}" if k in row else "-" for k in keys],
                    width,
                )
            lines.append(line)
        return "\n".join(lines)


def _cells(texts, width):
    return "".join(text.rjust(6) for text in texts).rjust(width)


def evaluate(
    matcher: Matcher | str | os.PathLike | tuple,
    split: CaptionedImages | None = None,
    ks: Sequence[int] = (1, 5, 10),
    labels: tuple[Sequence[int], Sequence[int]] | None = None,
) -> Report:
    """Measures retrieval in both directions.

    The gallery holds each image once and every caption. Images that cannot
    be read are left out with their captions, and named.

    Args:
        matcher: A model, the folder of an exported one, or a pair of image
            embeddings `[n, d]` and text embeddings `[m, d]`.
        split: What to measure on.
        ks: The K of R@K.
        labels: For a pair of embeddings, in place of the split: labels of
            the images and of the texts.

    Returns:
        A `Report`.

    >>> import kmatch
    >>> images = [[1.0, 0.0], [0.0, 1.0]]
    >>> texts = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]]
    >>> report = kmatch.evaluate((images, texts), labels=([0, 1], [0, 0, 1]))
    >>> round(report["t2i_r1"], 3)
    0.667
    """
    if isinstance(matcher, (tuple, list)):
        image_embeddings, text_embeddings = map(np.asarray, matcher)
        if labels is None:
            if split is None:
                raise ValueError(
                    "Embeddings are evaluated with a split, or with "
                    "labels=(image labels, text labels). Received neither."
                )
            labels = split.labels, split.text_labels
    else:
        if split is None or labels is not None:
            raise ValueError(
                "A model is evaluated on a split: evaluate(model, split)."
            )
        if isinstance(matcher, (str, os.PathLike)):
            matcher = SavedMatcher(matcher)
        image_embeddings, text_embeddings, kept = encode_split(matcher, split)
        report_left_out(split, kept)
        labels = kept.labels, kept.text_labels
    return Report(
        metrics(image_embeddings, text_embeddings, *labels, ks=ks),
        ks,
        len(image_embeddings),
        len(text_embeddings),
    )


def encode_split(
    matcher: Matcher | SavedMatcher,
    split: CaptionedImages,
    progress: bool = True,
) -> tuple[np.ndarray, np.ndarray, "Readable"]:
    """Encodes each image and each caption of a split once.

    Returns:
        Embeddings of the images that can be read, those of their captions,
        and what was read.
    """
    embeddings, images = matcher.encode_readable_images(
        split.images, progress=progress
    )
    if len(images) == 0:
        raise ValueError(
            f"None of the {len(split.images)} images can be read. They must "
            "be JPEG, PNG, GIF, BMP or WebP files."
        )
    kept = Readable(split, images)
    captions = [split.captions[i] for i in kept.captions]
    texts = matcher.encode_texts(captions, progress=progress)
    return embeddings, texts, kept


class Readable:
    """The part of a split whose images can be read.

    Attributes:
        images: Indices of the images.
        captions: Indices of their captions.
        labels: The images' labels.
        text_labels: The captions' labels.
    """

    def __init__(self, split: CaptionedImages, images: np.ndarray):
        self.images = images
        self.captions = np.flatnonzero(np.isin(split.caption_image, images))
        self.labels = split.labels[images]
        self.text_labels = split.text_labels[self.captions]


def report_left_out(split: CaptionedImages, kept: Readable):
    """Names the images that could not be read, if any."""
    left_out = np.setdiff1d(np.arange(len(split.images)), kept.images)
    if len(left_out):
        _log.warning(
            "Evaluated without %d of %d images, which cannot be read, and "
            "their %d captions: %s.",
            len(left_out),
            len(split.images),
            len(split.captions) - len(kept.captions),
            ", ".join(image_name(split.images, i) for i in left_out),
        )
