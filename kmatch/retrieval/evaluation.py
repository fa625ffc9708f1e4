"""Evaluation of a matcher on a split."""

import logging
import os
from collections.abc import Sequence

import numpy as np

from kmatch.data.captioned import CaptionedImages, check_split
from kmatch.data.images import image_name
from kmatch.matchers import Matcher, SavedMatcher
from kmatch.retrieval.inputs import checked_ks, checked_labels, matrices
from kmatch.retrieval.protocols import (
    Embedded,
    check_fits,
    check_protocol,
    measure_folds,
)
from kmatch.retrieval.results import Report

_log = logging.getLogger("kmatch")


def evaluate(
    matcher: Matcher | str | os.PathLike | tuple,
    split: CaptionedImages | None = None,
    ks: Sequence[int] = (1, 5, 10),
    labels: tuple[Sequence[int], Sequence[int]] | None = None,
    protocol: str = "all",
    legacy_map: bool = False,
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
        protocol: `"all"` searches among all; `"coco-1k"` takes the mean over
            consecutive folds of 1000 images, and `"coco-5k"` makes sure that
            there are 5000; `"identity"` is person search, by labels that
            images share; `"class"` has one text per label, the mean of its
            captions (CUB, Flowers).
        legacy_map: Add the mAP of the evaluator behind ITMeetsAL's tables,
            for comparing with them only.

    Returns:
        A `Report`.

    >>> import kmatch
    >>> images = [[1.0, 0.0], [0.0, 1.0]]
    >>> texts = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]]
    >>> report = kmatch.evaluate((images, texts), labels=([0, 1], [0, 0, 1]))
    >>> round(report["t2i_r1"], 3)
    0.667
    """
    # Before the encoding, which may take long.
    check_protocol(protocol)
    ks = checked_ks(ks)
    readable = None
    if split is not None:
        check_split(split)
    if isinstance(matcher, (tuple, list)):
        images, texts = _two("embeddings", matcher)
        if (labels is None) == (split is None):
            raise ValueError(
                "Embeddings are evaluated with a split, or with "
                "labels=(image labels, text labels). Received "
                f"{'neither' if labels is None else 'both'}."
            )
        if labels is None:
            labels = split.labels, split.text_labels
        image_labels, text_labels = _two("labels", labels)
        images, texts = matrices(image=images, text=texts)
        labels = checked_labels(
            image=(image_labels, images), text=(text_labels, texts)
        )
        check_fits(protocol, labels[0])
        num_images = len(images)
    else:
        if split is None or labels is not None:
            raise ValueError(
                "A model is evaluated on a split: evaluate(model, split)."
            )
        check_fits(protocol, split.labels)
        if isinstance(matcher, (str, os.PathLike)):
            matcher = SavedMatcher(matcher)
        if not isinstance(matcher, (Matcher, SavedMatcher)):
            raise ValueError(
                "What is evaluated is a kmatch.Matcher, the folder of an "
                "exported one, or (image embeddings, text embeddings). "
                f"Received: {type(matcher).__name__}."
            )
        images, texts, kept = encode_split(matcher, split, normalized=False)
        report_left_out(split, kept)
        labels = kept.labels, kept.text_labels
        readable = kept.images, kept.captions
        num_images = len(split.images)
    embedded = Embedded(images, texts, *labels)
    folds = measure_folds(
        embedded, protocol, num_images, ks=ks, legacy_map=legacy_map
    )
    return Report(folds, embedded, ks, protocol, split, readable)


def _two(what, given):
    """What a pair holds, of the images and of the texts."""
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise ValueError(
            f"The {what} are a pair, (images', texts'). Received: "
            f"{type(given).__name__}"
            f"{f' of {len(given)}' if hasattr(given, '__len__') else ''}."
        )
    return given


def encode_split(
    matcher: Matcher | SavedMatcher,
    split: CaptionedImages,
    progress: bool = True,
    normalized: bool = True,
) -> tuple[np.ndarray, np.ndarray, "Readable"]:
    """Encodes each image and each caption of a split once.

    Args:
        matcher: What encodes.
        split: What to encode.
        progress: Whether to show a progress bar when it takes long.
        normalized: Whether embeddings have norm 1. Those of an exported
            model always have.

    Returns:
        Embeddings of the images that can be read, those of their captions,
        and what was read.
    """
    options = {"progress": progress}
    if isinstance(matcher, Matcher):
        options["normalized"] = normalized
    embeddings, images = matcher.encode_readable_images(split.images, **options)
    if len(images) == 0:
        raise ValueError(
            f"None of the {len(split.images)} images can be read. They must "
            "be JPEG, PNG, GIF, BMP or WebP files."
        )
    kept = Readable(split, images)
    captions = [split.captions[i] for i in kept.captions]
    texts = matcher.encode_texts(captions, **options)
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
