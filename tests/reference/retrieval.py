"""Retrieval metrics written from their definitions, slowly, in float64."""

import numpy as np


def cosine(x, z):
    norms = np.linalg.norm(x) * np.linalg.norm(z)
    return x @ z / norms if norms else 0.0


def ranking(query, gallery, tie_order):
    """Indices of a gallery, best first; of equal items, by tie order."""
    scores = [cosine(query, item) for item in gallery]
    return sorted(tie_order, key=lambda index: -scores[index])


def rankings(queries, gallery, query_labels, gallery_labels, tie_order):
    """For every query, whether its first, second, ... item is relevant."""
    return [
        [gallery_labels[i] == label for i in ranking(query, gallery, tie_order)]
        for query, label in zip(queries, query_labels)
    ]


def first_rank(relevant):
    return relevant.index(True) + 1


def average_precision(relevant):
    precisions = [
        sum(relevant[: i + 1]) / (i + 1)
        for i, hit in enumerate(relevant)
        if hit
    ]
    return np.mean(precisions)


def legacy_average_precision(relevant):
    """Leaves the hit itself out, unless nothing comes before it."""
    precisions = [
        sum(relevant[: max(i, 1)]) / (i + 1)
        for i, hit in enumerate(relevant)
        if hit
    ]
    return np.mean(precisions)


def precision_at(relevant, k):
    return np.mean(relevant[:k])


def interpolated_precision(relevant, recall):
    """Best precision at any rank with at least this recall."""
    hits = np.cumsum(relevant)
    return max(
        hits[i] / (i + 1)
        for i in range(len(relevant))
        if hits[i] >= recall * sum(relevant) - 1e-9
    )


def class_means(texts, labels):
    """One query per class: the mean of its captions' unit embeddings."""
    classes = sorted(set(labels))
    units = [x / (np.linalg.norm(x) or 1) for x in texts]
    means = [
        np.mean([x for x, own in zip(units, labels) if own == label], axis=0)
        for label in classes
    ]
    return means, classes


def metrics(
    images, texts, image_labels, text_labels, ks, image_order, text_order
):
    measured, rsum = {}, 0
    for direction, found in {
        "i2t": rankings(images, texts, image_labels, text_labels, text_order),
        "t2i": rankings(texts, images, text_labels, image_labels, image_order),
    }.items():
        found = [relevant for relevant in found if any(relevant)]
        first = np.array([first_rank(relevant) for relevant in found])
        for k in ks:
            measured[f"{direction}_r{k}"] = np.mean(first <= k)
            rsum += 100 * np.mean(first <= k)
        measured[f"{direction}_map"] = np.mean(
            [average_precision(relevant) for relevant in found]
        )
        measured[f"{direction}_medr"] = np.median(first)
        measured[f"{direction}_meanr"] = np.mean(first)
        measured[f"{direction}_legacy_map"] = np.mean(
            [legacy_average_precision(relevant) for relevant in found]
        )
    means, classes = class_means(texts, text_labels)
    found = rankings(means, images, classes, image_labels, image_order)
    measured["t2i_ap50"] = np.mean(
        [precision_at(relevant, 50) for relevant in found if any(relevant)]
    )
    measured["rsum"] = rsum
    return measured
