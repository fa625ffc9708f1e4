"""CMPM and CMPC written from the paper, slowly, in float64."""

import numpy as np


def unit(vector):
    return vector / np.linalg.norm(vector)


def cmpm(images, texts, image_labels, text_labels, **options):
    """Eqs 1 to 5."""
    return _match(images, texts, image_labels, text_labels, **options) + _match(
        texts, images, text_labels, image_labels, **options
    )


def _match(
    queries,
    gallery,
    query_labels,
    gallery_labels,
    epsilon=1e-8,
    reverse=False,
    softmax_targets=False,
):
    losses = []
    for x, label in zip(queries, query_labels):
        y = [float(label == other) for other in gallery_labels]
        if not any(y):
            continue
        projections = [np.exp(x @ unit(z)) for z in gallery]
        loss = 0
        for projection, y_j in zip(projections, y):
            p = projection / sum(projections)
            if softmax_targets:  # Chen et al., Eq 8
                q = np.exp(y_j) / sum(np.exp(y))
            else:
                q = y_j / sum(y)
            if reverse:
                loss += q * (np.log(q + epsilon) - np.log(p))
            else:
                loss += p * (np.log(p) - np.log(q + epsilon))
        losses.append(loss)
    return np.mean(losses) if losses else 0.0


def cmpc(
    images,
    texts,
    image_labels,
    text_labels,
    weights,
    normalize_weights=True,
    project=True,
):
    """Eqs 7 to 10."""
    if normalize_weights:
        weights = np.stack([unit(column) for column in weights.T], axis=1)
    losses = []
    for x, image_label in zip(images, image_labels):
        for z, text_label in zip(texts, text_labels):
            if image_label != text_label or image_label >= weights.shape[1]:
                continue
            x_hat = (x @ unit(z)) * unit(z) if project else x
            z_hat = (z @ unit(x)) * unit(x) if project else z
            losses.append(
                _cross_entropy(weights.T @ x_hat, image_label)
                + _cross_entropy(weights.T @ z_hat, image_label)
            )
    return np.mean(losses) if losses else 0.0


def _cross_entropy(logits, label):
    return -np.log(np.exp(logits[label]) / sum(np.exp(logits)))
