"""How many images, captions and labels a data set is known to have."""

import logging
from collections.abc import Mapping

import numpy as np

from kmatch.data.captioned import Splits

_log = logging.getLogger("kmatch")


def report_unusual_counts(
    name: str,
    splits: Splits,
    images: Mapping[str, int],
    captions: Mapping[str, int],
):
    """Says where a data set differs from its published counts."""
    for split in Splits._fields:
        found = getattr(splits, split)
        counts = len(found.images), len(found.captions)
        expected = images[split], captions[split]
        if counts != expected:
            _log.warning(
                "%s: the %s split has %d images and %d captions; published "
                "are %d and %d.", name, split, *counts, *expected,
            )  # fmt: skip


def report_unusual_labels(
    name: str, splits: Splits, kind: str, labels: Mapping[str, int]
):
    """Says where a data set has more or fewer labels than published.

    Args:
        name: The data set's.
        splits: What was loaded.
        kind: What a label stands for, in the plural.
        labels: How many each split is known to have.
    """
    for split in Splits._fields:
        count = len(np.unique(getattr(splits, split).labels))
        if count != labels[split]:
            _log.warning(
                "%s: the %s split has %d %s; published are %d.",
                name, split, count, kind, labels[split],
            )  # fmt: skip


def report_unusual_total(name: str, splits: Splits, images: int):
    """Says if all splits together have more or fewer images than published."""
    count = sum(len(split.images) for split in splits)
    if count != images:
        _log.warning("%s has %d images; published are %d.", name, count, images)
