"""Retrieval metrics, each a function of `Ranks`."""

import logging
from collections.abc import Sequence

import numpy as np

from kmatch.retrieval.ranking import (
    Ranks,
    both_ways,
    checked_labels,
    one_way,
    unit_rows,
)

_log = logging.getLogger("kmatch")


def metrics(
    image_embeddings,
    text_embeddings,
    image_labels,
    text_labels,
    ks: Sequence[int] = (1, 5, 10),
    *,
    legacy_map: bool = False,
    ap50_queries: str = "class",
) -> dict[str, float]:
    """Measures retrieval in both directions by cosine similarity.

    An image and a text belong together if their labels are equal; there may
    be any number of either per label. The gallery holds each image and each
    text once. Equal scores rank in one fixed random order. Queries whose label
    has no counterpart on the other side are left out, and counted in the log.

    Args:
        image_embeddings: `[n, d]`, of any norm.
        text_embeddings: `[m, d]`, of any norm.
        image_labels: `[n]`.
        text_labels: `[m]`.
        ks: The K of R@K.
        legacy_map: Add `i2t_legacy_map` and `t2i_legacy_map`, the mAP of the
            evaluator behind ITMeetsAL's tables, which comes out too low.
        ap50_queries: What AP@50 searches with: `"class"` for one query per
            label, the mean of its normalised text embeddings (Reed et al.,
            2016), or `"caption"` for every text.

    Returns:
        `i2t_r1`, ..., `i2t_map`, `i2t_medr`, `i2t_meanr`, the same for
        `t2i_`, `t2i_ap50` and `rsum`: fractions, but `medr` and `meanr` are
        ranks from 1, and `rsum` is the sum of all R@K in percent.

    >>> images = [[1.0, 0.0], [0.0, 1.0]]
    >>> texts = [[0.9, 0.1], [0.4, 0.6], [0.1, 0.9]]
    >>> measured = metrics(images, texts, [0, 1], [0, 0, 1], ks=(1, 2))
    >>> measured["i2t_r1"], round(measured["t2i_r1"], 3), measured["t2i_r2"]
    (1.0, 0.667, 1.0)
    """
    if len(ks) == 0 or any(k < 1 or k != int(k) for k in ks):
        raise ValueError(
            f"`ks` must be whole numbers from 1, such as (1, 5, 10). "
            f"Received: {ks}."
        )
    if ap50_queries not in ("class", "caption"):
        raise ValueError(
            "`ap50_queries` must be 'class' or 'caption'. "
            f"Received: {ap50_queries!r}."
        )
    images, texts = unit_rows(image=image_embeddings, text=text_embeddings)
    image_labels, text_labels = checked_labels(
        image=(image_labels, images), text=(text_labels, texts)
    )
    i2t, t2i = both_ways(images, texts, image_labels, text_labels)
    _log_left_out(i2t, "images", "text")
    _log_left_out(t2i, "texts", "image")

    recalls, measured = [], {}
    for direction, found in ("i2t", i2t), ("t2i", t2i):
        for k in ks:
            recalls.append(recall_at_k(found, k))
            measured[f"{direction}_r{k}"] = recalls[-1]
        measured[f"{direction}_map"] = mean_average_precision(found)
        measured[f"{direction}_medr"] = median_rank(found)
        measured[f"{direction}_meanr"] = mean_rank(found)
    if ap50_queries == "class":
        means, classes = _class_means(texts, text_labels)
        found = one_way(means, images, classes, image_labels)
    else:
        found, classes = t2i, text_labels
    measured["t2i_ap50"] = class_precision(found, classes, k=50)
    measured["rsum"] = 100 * sum(recalls)
    if legacy_map:
        measured["i2t_legacy_map"] = legacy_mean_average_precision(i2t)
        measured["t2i_legacy_map"] = legacy_mean_average_precision(t2i)
    return measured


def recall_at_k(found: Ranks, k: int) -> float:
    """Share of queries with a relevant item among the first k."""
    return float(np.mean(found.first <= k))


def median_rank(found: Ranks) -> float:
    """Median of the ranks at which queries find their first relevant item."""
    return float(np.median(found.first))


def mean_rank(found: Ranks) -> float:
    """Mean of the ranks at which queries find their first relevant item."""
    return float(np.mean(found.first))


def mean_average_precision(found: Ranks) -> float:
    """Mean over queries of the mean precision at each relevant item."""
    return float(np.mean(found.average_precision))


def legacy_mean_average_precision(found: Ranks) -> float:
    """mAP as in ITMeetsAL's tables: see `Ranks.legacy_average_precision`."""
    return float(np.mean(found.legacy_average_precision))


def class_precision(found: Ranks, query_labels, k: int = 50) -> float:
    """AP@K: share of the first k that is relevant, averaged over classes.

    Args:
        found: Ranks of one query or several per class.
        query_labels: Classes of all queries, of those left out too.
        k: Of a smaller gallery, everything counts.

    Returns:
        The mean over classes of the mean over a class's queries.
    """
    among_first = found.sum((found.ranks <= k).astype(float))
    precision = among_first / min(k, found.gallery_size)
    labels = np.asarray(query_labels)[found.queries]
    _, classes = np.unique(labels, return_inverse=True)
    per_class = np.bincount(classes, precision) / np.bincount(classes)
    return float(np.mean(per_class))


def precision_recall(
    found: Ranks, num_levels: int = 11
) -> tuple[np.ndarray, np.ndarray]:
    """Interpolated precision-recall curve, averaged over queries.

    A query's precision at a level of recall is the best it has at that level
    or any higher one.

    Args:
        found: Ranks of the queries.
        num_levels: Levels of recall from 0 to 1; 11 is the classic choice.

    Returns:
        The levels of recall, and the precision at each.

    >>> found = Ranks(np.array([0]), np.array([1, 4]), np.array([0]), 4, 0)
    >>> precision_recall(found, num_levels=3)
    (array([0. , 0.5, 1. ]), array([1. , 1. , 0.5]))
    """
    levels = np.linspace(0, 1, num_levels)
    total = np.zeros(num_levels)
    for precision in np.split(found.precision, found.starts[1:]):
        best_from = np.maximum.accumulate(precision[::-1])[::-1]
        # 0.7 * 10 is a little more than 7: rounding must not cost an item.
        items = np.ceil(levels * len(precision) - 1e-9).astype(int)
        total += best_from[np.maximum(items, 1) - 1]
    return levels, total / len(found.queries)


def _log_left_out(found, queries, counterpart):
    if found.num_left_out:
        _log.warning(
            "Measured without %d of %d %s: no %s has their label.",
            found.num_left_out,
            found.num_left_out + len(found.queries),
            queries,
            counterpart,
        )


def _class_means(embeddings, labels):
    """Returns the mean embedding of each class, and the classes."""
    classes, counts = np.unique(labels, return_counts=True)
    by_class = embeddings[np.argsort(labels, kind="stable")]
    sums = np.add.reduceat(by_class, np.cumsum(counts) - counts)
    return sums / counts[:, None].astype(np.float32), classes
