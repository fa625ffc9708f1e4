"""How many images and captions a data set is known to have."""

import logging
from collections.abc import Mapping

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
