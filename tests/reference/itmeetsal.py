"""The terms of ITMeetsAL written from the paper, slowly, in float64."""

import numpy as np

from tests.reference.projection import unit


def softmax(logits):
    return np.exp(logits) / sum(np.exp(logits))


def label_balance(
    images, texts, image_labels, text_labels, weights, tau, epsilon=1e-8
):
    """Eq 11, on the projections and normalised weights of Eq 10."""
    weights = np.stack([unit(column) for column in weights.T], axis=1)
    divergences = []
    for x, image_label in zip(images, image_labels):
        for z, text_label in zip(texts, text_labels):
            if image_label != text_label or image_label >= weights.shape[1]:
                continue
            p_image = softmax(weights.T @ ((x @ unit(z)) * unit(z)) / tau)
            p_text = softmax(weights.T @ ((z @ unit(x)) * unit(x)) / tau)
            divergence = 0
            for p, q in zip(p_image, p_text):
                divergence += p * np.log(p / (q + epsilon))
                divergence += q * np.log(q / (p + epsilon))
            divergences.append(divergence)
    return tau**2 * np.mean(divergences) if divergences else 0.0


def triplet(
    images, texts, image_labels, text_labels, margin=0.5, inter=True, intra=True
):
    """Eqs 12 to 14."""
    images, texts = list(map(unit, images)), list(map(unit, texts))
    loss = 0
    if inter:
        loss += _triplets(images, texts, image_labels, text_labels, margin)
        loss += _triplets(texts, images, text_labels, image_labels, margin)
    if intra:
        loss += _triplets(images, images, image_labels, image_labels, margin)
        loss += _triplets(texts, texts, text_labels, text_labels, margin)
    return loss


def _triplets(anchors, others, anchor_labels, other_labels, margin):
    losses = []
    for j, (anchor, label) in enumerate(zip(anchors, anchor_labels)):
        itself = j if anchors is others else None
        positives, negatives = [], []
        for k, (other, other_label) in enumerate(zip(others, other_labels)):
            if k != itself:
                same = label == other_label
                (positives if same else negatives).append(anchor @ other)
        if positives and negatives:
            gap = margin - min(positives) + max(negatives)
            losses.append(max(0, gap))
        elif positives:
            losses.append(0)
    return np.mean(losses) if losses else 0.0


def negative_entropy(image_logits, text_logits):
    """Eq 4."""
    total = 0
    for logits in (image_logits, text_logits):
        total += np.mean([sum(p * np.log(p)) for p in map(softmax, logits)])
    return total


def modality_classification(image_logits, text_logits):
    """Eq 5, with image = class 0 and text = class 1."""
    images = [np.log(softmax(logits)[0]) for logits in image_logits]
    texts = [np.log(softmax(logits)[1]) for logits in text_logits]
    return -np.mean(images) - np.mean(texts)
