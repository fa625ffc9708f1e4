"""Protocols: who searches among whom, and which figures papers show."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kmatch.retrieval.inputs import checked_labels, unit_rows
from kmatch.retrieval.measures import (
    Measured,
    class_means,
    log_left_out,
    measure,
)

FOLD = 1000
DIRECTIONS = {"i2t": "Image-to-Text", "t2i": "Text-to-Image"}


@dataclass(frozen=True)
class Embedded:
    """Embeddings of both sides, and what belongs together."""

    images: np.ndarray
    texts: np.ndarray
    image_labels: np.ndarray
    text_labels: np.ndarray


def check_protocol(protocol: str):
    """Refuses a protocol that does not exist."""
    if not isinstance(protocol, str) or protocol not in PROTOCOLS:
        raise ValueError(
            f"There is no protocol {protocol!r}. Choose one of "
            f"{', '.join(PROTOCOLS)}."
        )


def check_fits(protocol: str, image_labels: np.ndarray):
    """Refuses images that a protocol is not made for.

    Args:
        protocol: One of `PROTOCOLS`.
        image_labels: Labels of all images.
    """
    count = len(image_labels)
    if protocol == "coco-1k" and (count == 0 or count % FOLD):
        raise ValueError(
            f"Protocol 'coco-1k' takes folds of {FOLD} images, and there are "
            f"{count}. Pass the whole test split, or use protocol 'all'."
        )
    if protocol == "coco-5k" and count != 5 * FOLD:
        raise ValueError(
            f"Protocol 'coco-5k' takes {5 * FOLD} images, and there are "
            f"{count}. Use protocol 'all'."
        )
    if protocol in ("identity", "class"):
        if len(np.unique(image_labels)) == count:
            raise ValueError(
                f"Protocol '{protocol}' needs the {protocol} of each image as "
                f"its label, and no two of {count} images share one. Pass "
                "labels, or use protocol 'all'."
            )


def measure_folds(
    embedded: Embedded, protocol: str, num_images: int, **options
) -> list[Measured]:
    """Measures as a protocol asks.

    Args:
        embedded: What to measure.
        protocol: One of `PROTOCOLS`.
        num_images: How many images there are with those that could not be
            read.
        **options: For `measure`.

    Returns:
        What was measured in each gallery; the figures are their mean.
    """
    galleries = PROTOCOLS[protocol](embedded, num_images)
    return [
        measure(x.images, x.texts, x.image_labels, x.text_labels, **options)
        for x in galleries
    ]


def columns(protocol: str, ks: Sequence[int]) -> dict[str, dict[str, str]]:
    """What papers show: by direction, titles of metrics."""
    recalls = {
        direction: {f"{direction}_r{k}": f"R@{k}" for k in ks}
        for direction in DIRECTIONS
    }
    if protocol == "identity":
        return {"t2i": recalls["t2i"]}
    if protocol == "class":
        return {"i2t": recalls["i2t"], "t2i": {"t2i_ap50": "AP@50"}}
    return recalls


def _one_gallery(embedded, num_images):
    return [embedded]


def _coco_1k(embedded, num_images):
    """The mean of consecutive folds of 1000 images, five in COCO's case."""
    if len(embedded.images) < num_images:
        raise ValueError(
            f"Protocol 'coco-1k' takes folds of {FOLD} images, and "
            f"{num_images - len(embedded.images)} of {num_images} cannot be "
            "read. Mend them, or use protocol 'all'."
        )
    # Checked as a whole, so that errors name the rows the caller knows.
    images, texts = unit_rows(image=embedded.images, text=embedded.texts)
    image_labels, text_labels = checked_labels(
        image=(embedded.image_labels, images),
        text=(embedded.text_labels, texts),
    )
    lost = np.count_nonzero(~np.isin(text_labels, image_labels))
    log_left_out(lost, len(texts), "texts", "image")
    folds = []
    for start in range(0, num_images, FOLD):
        fold = slice(start, start + FOLD)
        own = np.isin(text_labels, image_labels[fold])
        if not own.any():
            raise ValueError(
                f"Images {start} to {start + FOLD - 1}, a fold of protocol "
                "'coco-1k', have no texts. Leave them out, or use protocol "
                "'all'."
            )
        folds.append(
            Embedded(
                images[fold], texts[own], image_labels[fold], text_labels[own]
            )
        )
    spread = len(np.concatenate([np.unique(f.image_labels) for f in folds]))
    if spread > len(np.unique(image_labels)):
        raise ValueError(
            "Protocol 'coco-1k' needs an image's captions in one fold, and "
            "some labels have images in several. Give each image a label of "
            "its own."
        )
    return folds


def _class(embedded, num_images):
    """Reed et al., 2016: a class's text is the mean of its captions."""
    images, texts = unit_rows(image=embedded.images, text=embedded.texts)
    _, text_labels = checked_labels(
        image=(embedded.image_labels, images),
        text=(embedded.text_labels, texts),
    )
    means, classes = class_means(texts, text_labels)
    return [Embedded(images, means, embedded.image_labels, classes)]


PROTOCOLS: dict[str, Callable[[Embedded, int], list[Embedded]]] = {
    "all": _one_gallery,
    "coco-1k": _coco_1k,
    "coco-5k": _one_gallery,
    "identity": _one_gallery,
    "class": _class,
}
