"""Retrieval metrics: what each query scores, and what that comes to."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from kmatch.retrieval.inputs import checked_ks, checked_labels, unit_rows
from kmatch.retrieval.ranking import Ranks, both_ways, one_way

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
    return measure(
        image_embeddings, text_embeddings, image_labels, text_labels,
        ks, legacy_map, ap50_queries,
    ).metrics()  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """One metric's value for each query, or for each class.

    Attributes:
        values: `[queries]`.
        clusters: `[queries]`: what shares a label is one cluster, an image
            with its captions or all images and captions of a class.
        lowest: The least a value can be.
        highest: The most a value can be.
        statistic: What the values come to, `"mean"` or `"median"`.
    """

    values: np.ndarray
    clusters: np.ndarray
    lowest: float = 0.0
    highest: float = 1.0
    statistic: str = "mean"

    @property
    def is_rank(self) -> bool:
        """Whether values are ranks; otherwise they are shares."""
        return self.lowest == 1 < self.highest

    def result(self) -> float:
        """What the values come to."""
        statistic = {"mean": np.mean, "median": np.median}[self.statistic]
        return float(statistic(self.values))


@dataclass(frozen=True)
class Measured:
    """What every query of a gallery found.

    Attributes:
        i2t: Ranks of the texts for each image.
        t2i: Ranks of the images for each text.
        samples: By metric, its value for each query.
        recalls: Names of those metrics whose sum is `rsum`.
        num_clusters: Number of labels that both sides have.
    """

    i2t: Ranks
    t2i: Ranks
    samples: dict[str, Sample]
    recalls: tuple[str, ...]
    num_clusters: int

    def metrics(self) -> dict[str, float]:
        """The metrics by name; see `kmatch.retrieval.metrics`."""
        results = {name: x.result() for name, x in self.samples.items()}
        return with_rsum(results, self.recalls)

    def range(self, name: str) -> tuple[float, float]:
        """The least and the most a metric can be."""
        if name == "rsum":
            return 0.0, 100.0 * len(self.recalls)
        return self.samples[name].lowest, self.samples[name].highest


def with_rsum(results: dict, recalls: Sequence[str]) -> dict:
    """Adds `rsum`, behind `t2i_ap50` where papers have it."""
    rsum = 100 * sum(results[name] for name in recalls)
    legacy = {n: x for n, x in results.items() if n.endswith("_legacy_map")}
    rest = {n: x for n, x in results.items() if n not in legacy}
    return {**rest, "rsum": rsum, **legacy}


def measure(
    image_embeddings,
    text_embeddings,
    image_labels,
    text_labels,
    ks: Sequence[int] = (1, 5, 10),
    legacy_map: bool = False,
    ap50_queries: str = "class",
) -> Measured:
    """Measures each query; the arguments are those of `metrics`."""
    ks = checked_ks(ks)
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
    log_left_out(i2t.num_left_out, len(images), "images", "text")
    log_left_out(t2i.num_left_out, len(texts), "texts", "image")
    if ap50_queries == "class":
        means, classes = class_means(texts, text_labels)
        by_class = one_way(means, images, classes, image_labels)
    else:
        by_class, classes = t2i, text_labels

    clusters = np.intersect1d(image_labels, text_labels)
    samples, recalls = {}, []
    for direction, found, labels in (
        ("i2t", i2t, image_labels),
        ("t2i", t2i, text_labels),
    ):
        own = np.searchsorted(clusters, labels[found.queries])
        for k in ks:
            recalls.append(f"{direction}_r{k}")
            samples[recalls[-1]] = Sample(hits_at_k(found, k), own)
        samples[f"{direction}_map"] = Sample(found.average_precision, own)
        for name, statistic in ("medr", "median"), ("meanr", "mean"):
            samples[f"{direction}_{name}"] = Sample(
                found.first, own, 1.0, float(found.gallery_size), statistic
            )
        if legacy_map:
            samples[f"{direction}_legacy_map"] = Sample(
                found.legacy_average_precision, own
            )
    samples["t2i_ap50"] = Sample(
        class_precision(by_class, classes, k=50),
        np.arange(len(clusters)),
        *class_precision_range(by_class, k=50),
    )
    return Measured(i2t, t2i, samples, tuple(recalls), len(clusters))


def hits_at_k(found: Ranks, k: int) -> np.ndarray:
    """For each query, whether a relevant item is among the first k.

    Their mean is R@K.
    """
    return found.first <= k


def class_precision(found: Ranks, query_labels, k: int = 50) -> np.ndarray:
    """For each class, the share of the first k that is relevant.

    Their mean is AP@K.

    Args:
        found: Ranks of one query or several per class.
        query_labels: Classes of all queries, of those left out too.
        k: Of a smaller gallery, everything counts.

    Returns:
        For each class in rising order, the mean over its queries.
    """
    among_first = found.sum((found.ranks <= k).astype(float))
    precision = among_first / min(k, found.gallery_size)
    labels = np.asarray(query_labels)[found.queries]
    _, classes = np.unique(labels, return_inverse=True)
    return np.bincount(classes, precision) / np.bincount(classes)


def class_precision_range(found: Ranks, k: int = 50) -> tuple[float, float]:
    """The least and the most of `class_precision`: few classes have K."""
    k = min(k, found.gallery_size)
    others = found.gallery_size - found.num_relevant
    least = max(k - others.max(), 0) / k
    most = min(found.num_relevant.max(), k) / k
    return float(least), float(most)


def mean_similarity(embeddings: np.ndarray) -> float:
    """Mean cosine similarity of different rows: 1 where all are alike.

    >>> mean_similarity(np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 3.0]]))
    0.3333333333333333
    """
    count = len(embeddings)
    x = np.asarray(embeddings, np.float64)
    norms = np.linalg.norm(x, axis=1, keepdims=True)
    if count == 1 or not norms.any():
        return 1.0
    x = x / np.where(norms > 0, norms, 1)
    total = np.sum(x.sum(axis=0) ** 2) - np.sum(x * x)
    return float(total / (count * (count - 1)))


def class_means(embeddings: np.ndarray, labels: np.ndarray):
    """Returns the mean embedding of each class, and the classes."""
    classes, number = np.unique(labels, return_inverse=True)
    means = tf.math.unsorted_segment_mean(embeddings, number, len(classes))
    return means.numpy(), classes


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


def log_left_out(count: int, total: int, queries: str, counterpart: str):
    """Says how many queries nothing can be found for, if any."""
    if count:
        _log.warning(
            "Measured without %d of %d %s: no %s has their label.",
            count,
            total,
            queries,
            counterpart,
        )
