"""Captioned images: what every data set becomes."""

import os
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kmatch.data.images import check_images, image_name, is_path


class CaptionedImages:
    """Images, their captions, and which caption belongs to which image.

    Args:
        images: Paths of image files, arrays of RGB values in 0..255
            (`[height, width, 3]` each, uint8 or float32), or encoded files
            as `bytes`.
        captions: Strings.
        caption_image: For each caption, the index of its image.
        labels: For each image, a whole number. What shares a label matches.
            By default each image has its own.

    Two images, the first with one caption and the second with two:

    >>> import numpy as np
    >>> import kmatch
    >>> split = kmatch.data.CaptionedImages(
    ...     images=np.zeros([2, 8, 8, 3], "uint8"),
    ...     captions=["a cat", "a dog", "a brown dog"],
    ...     caption_image=[0, 1, 1],
    ... )
    >>> split
    CaptionedImages(images=2, captions=3, labels=2)
    >>> split.text_labels
    array([0, 1, 1])
    """

    def __init__(
        self,
        images: Sequence,
        captions: Sequence[str],
        caption_image: Sequence[int],
        labels: Sequence[int] | None = None,
    ):
        if len(images) == 0:
            raise ValueError("There are no images. Pass at least one.")
        self.images = check_images(images)
        self.captions = _check_captions(captions)
        self.caption_image = _check_caption_image(
            caption_image, self.captions, len(self.images)
        )
        if labels is None:
            labels = np.arange(len(self.images))
        self.labels = _check_labels(labels, len(self.images))

    @property
    def num_labels(self) -> int:
        """How many classes a classifier over these labels needs."""
        return int(self.labels.max()) + 1

    @property
    def text_labels(self) -> np.ndarray:
        """The label of each caption: that of its image."""
        return self.labels[self.caption_image]

    def __repr__(self):
        return (
            f"CaptionedImages(images={len(self.images)}, "
            f"captions={len(self.captions)}, "
            f"labels={len(np.unique(self.labels))})"
        )


class Splits(NamedTuple):
    """A data set's `train`, `val` and `test` split."""

    train: CaptionedImages
    val: CaptionedImages
    test: CaptionedImages


def check_split(split):
    """Refuses what is no split, such as a whole data set."""
    if not isinstance(split, CaptionedImages):
        raise ValueError(
            "A split is a kmatch.data.CaptionedImages, such as data.test or "
            "what from_pairs returns. Received: "
            f"{type(split).__name__}."
        )


def from_pairs(
    images: Sequence,
    captions: Sequence[str],
    labels: Sequence[int] | None = None,
) -> CaptionedImages:
    """Builds captioned images from parallel lists, one entry per caption.

    Equal paths, or the same array object, are one image.

    Args:
        images: For each caption, the path or array of its image.
        captions: Strings.
        labels: For each caption, the label of its image, if images share
            labels.

    Returns:
        A `CaptionedImages`.

    >>> import numpy as np
    >>> import kmatch
    >>> cat, dog = np.zeros([2, 8, 8, 3], "uint8")
    >>> kmatch.data.from_pairs([cat, dog, dog], ["a cat", "a dog", "woof"])
    CaptionedImages(images=2, captions=3, labels=2)
    """
    for name, column in (("captions", captions), ("labels", labels)):
        if column is not None and len(column) != len(images):
            raise ValueError(
                "from_pairs takes parallel lists, one entry per caption. "
                f"Received {len(images)} images and {len(column)} {name}."
            )
    unique, caption_image, index = [], [], {}
    for image in images:
        key = os.fspath(image) if is_path(image) else id(image)
        if key not in index:
            index[key] = len(unique)
            unique.append(image)
        caption_image.append(index[key])
    if labels is not None:
        labels = _label_per_image(labels, caption_image, unique)
    return CaptionedImages(unique, captions, caption_image, labels)


def _label_per_image(labels, caption_image, images):
    label_of = {}
    for row, (image, label) in enumerate(zip(caption_image, labels)):
        if label_of.setdefault(image, label) != label:
            raise ValueError(
                f"Image {image_name(images, image)} has label "
                f"{label_of[image]} in one row and {label} in row {row}. "
                "Give all rows of an image the same label."
            )
    return [label_of[i] for i in range(len(images))]


def _check_captions(captions):
    if isinstance(captions, str) or len(captions) == 0:
        raise ValueError(
            "captions must be a list with at least one string. "
            f"Received: {captions!r}."
        )
    for position, caption in enumerate(captions):
        if not isinstance(caption, str):
            raise ValueError(
                f"Caption {position} is not a string. Received: {caption!r}."
            )
    return list(captions)


def _check_caption_image(caption_image, captions, num_images):
    caption_image = np.asarray(caption_image)
    if caption_image.shape != (len(captions),):
        raise ValueError(
            "caption_image names one image for each caption. Received "
            f"{len(captions)} captions and caption_image of shape "
            f"{caption_image.shape}."
        )
    if caption_image.dtype.kind not in "ui":
        raise ValueError(
            "caption_image must hold whole numbers. "
            f"Received dtype {caption_image.dtype}."
        )
    outside = (caption_image < 0) | (caption_image >= num_images)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise ValueError(
            f"{int(outside.sum())} captions have no image: caption {row} "
            f"('{captions[row]}') belongs to image {caption_image[row]}, and "
            f"images are numbered 0 to {num_images - 1}."
        )
    counts = Counter(caption_image.tolist())
    if len(counts) < num_images:
        image = next(i for i in range(num_images) if i not in counts)
        raise ValueError(
            f"{num_images - len(counts)} images have no caption, the first "
            f"of them is image {image}. Leave them out."
        )
    return caption_image.astype(np.int64)


def _check_labels(labels, num_images):
    labels = np.asarray(labels)
    if labels.shape != (num_images,):
        raise ValueError(
            f"labels holds one label for each of the {num_images} images. "
            f"Received the shape {labels.shape}."
        )
    if labels.dtype.kind not in "ui" or labels.min() < 0:
        raise ValueError(
            "Labels must be whole numbers from 0 on. Number other labels "
            "with numpy.unique(labels, return_inverse=True)[1]. "
            f"Received: {labels[:5].tolist()}, …"
        )
    return labels.astype(np.int64)
