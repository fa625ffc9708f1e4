"""Triplets of an anchor, its hardest positive and its hardest negative.

Chen et al., "Integrating Information Theory and Adversarial Learning for
Cross-modal Retrieval", Pattern Recognition 2021.
"""

import keras
import tensorflow as tf

from kmatch.losses.base import (
    MatchingLoss,
    mean_of_counted,
    normalize,
    positives,
)


def triplet(
    image_embeddings: tf.Tensor,
    text_embeddings: tf.Tensor,
    image_labels: tf.Tensor,
    text_labels: tf.Tensor,
    margin: float = 0.5,
    inter: bool = True,
    intra: bool = True,
) -> tf.Tensor:
    """Bi-directional triplet loss with hardest triplets, L_tr (Eqs 12-14).

    With S the cosine similarity, an anchor j loses

        max(0, margin − min S_{j,positive} + max S_{j,negative})

    over all that share its label and all that do not; the anchor itself is
    neither. Anchors are images among texts and texts among images
    (inter-modal, Eq 12), images among images and texts among texts
    (intra-modal, Eq 13). Each of these is a mean over the anchors that have a
    positive, and they are added (Eq 14). An anchor without a negative loses
    nothing.

    Where each image has a label of its own, only several captions of it in
    one batch are intra-modal positives: see `captions_per_image` of
    `Matcher.batches`.

    Args:
        image_embeddings: `[n, d]`.
        text_embeddings: `[m, d]`.
        image_labels: `[n]`.
        text_labels: `[m]`. What shares a label matches.
        margin: By how much a positive is to be closer than a negative.
        inter: Whether to compare across the modalities.
        intra: Whether to compare within each.

    Returns:
        Scalar.

    >>> import kmatch
    >>> x = [[1.0, 0.0], [0.0, 1.0]]
    >>> float(kmatch.losses.triplet(x, x, [0, 1], [0, 1], margin=0.5))
    0.0
    >>> float(kmatch.losses.triplet(x, x, [0, 1], [1, 0], margin=0.5))
    3.0
    """
    images = normalize(tf.cast(image_embeddings, tf.float32))
    texts = normalize(tf.cast(text_embeddings, tf.float32))
    matches = _matches(image_labels, text_labels, inter, intra)
    sides = {"i2t": (images, texts), "t2i": (texts, images)}
    sides |= {"i2i": (images, images), "t2t": (texts, texts)}
    return tf.add_n(
        [
            _hardest(*sides[direction], positive, negative, margin)
            for direction, (positive, negative) in matches.items()
        ]
    )


def triplet_anchors(
    image_labels: tf.Tensor,
    text_labels: tf.Tensor,
    inter: bool = True,
    intra: bool = True,
) -> dict[str, tf.Tensor]:
    """How many anchors of each direction have a positive, and so count.

    >>> from kmatch.losses.triplets import triplet_anchors
    >>> counted = triplet_anchors([0, 1], [0, 0, 2])
    >>> {direction: int(count) for direction, count in counted.items()}
    {'i2t': 1, 't2i': 2, 'i2i': 0, 't2t': 2}
    """
    matches = _matches(image_labels, text_labels, inter, intra)
    return {
        direction: tf.math.count_nonzero(
            tf.reduce_any(positive, axis=1), dtype=tf.float32
        )
        for direction, (positive, _) in matches.items()
    }


def _matches(image_labels, text_labels, inter, intra):
    """Per direction, who is a positive and who a negative of each anchor."""
    if not (inter or intra):
        raise ValueError("A triplet loss is inter, intra or both, not neither.")
    matches = {}
    if inter:
        across = positives(image_labels, text_labels)
        back = tf.transpose(across)
        matches |= {"i2t": (across, ~across), "t2i": (back, ~back)}
    if intra:
        for direction, labels in (("i2i", image_labels), ("t2t", text_labels)):
            same = positives(labels, labels)
            others = ~tf.eye(tf.shape(same)[0], dtype=tf.bool)
            matches[direction] = same & others, ~same
    return matches


def _hardest(anchors, gallery, positive, negative, margin):
    """One direction: a sum of Eq 12 or Eq 13."""
    similarity = tf.matmul(anchors, gallery, transpose_b=True)
    # Farther than any cosine is from another, so that it is never chosen.
    far = tf.constant(4.0, similarity.dtype)
    hardest_positive = tf.reduce_min(
        tf.where(positive, similarity, far), axis=1
    )
    hardest_negative = tf.reduce_max(
        tf.where(negative, similarity, -far), axis=1
    )
    losses = tf.nn.relu(margin - hardest_positive + hardest_negative)
    complete = tf.reduce_any(positive, axis=1) & tf.reduce_any(negative, axis=1)
    return mean_of_counted(
        tf.where(complete, losses, 0.0), tf.reduce_any(positive, axis=1)
    )


@keras.saving.register_keras_serializable(package="kmatch")
class Triplet(MatchingLoss):
    """Bi-directional triplet loss; see `kmatch.losses.triplet`.

    How many anchors have a positive is logged, per batch, as `i2t_anchors`,
    `t2i_anchors`, `i2i_anchors` and `t2t_anchors`.

    Args:
        margin: By how much a positive is to be closer than a negative.
        inter: Whether to compare across the modalities.
        intra: Whether to compare within each.

    >>> import kmatch
    >>> kmatch.losses.Triplet(margin=0.2, intra=False).name
    'triplet'
    """

    def __init__(
        self,
        margin: float = 0.5,
        inter: bool = True,
        intra: bool = True,
        name: str = "triplet",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        self.margin = margin
        self.inter = inter
        self.intra = intra

    @property
    def figures(self):
        directions = triplet_anchors([0], [0], self.inter, self.intra)
        return tuple(f"{direction}_anchors" for direction in directions)

    def observe(self, image_labels, text_labels):
        counted = triplet_anchors(
            image_labels, text_labels, self.inter, self.intra
        )
        return {f"{direction}_anchors": n for direction, n in counted.items()}

    def call(
        self, image_embeddings, text_embeddings, image_labels, text_labels
    ):
        return triplet(
            image_embeddings, text_embeddings, image_labels, text_labels,
            self.margin, self.inter, self.intra,
        )  # fmt: skip

    def get_config(self):
        return {
            **super().get_config(),
            "margin": self.margin,
            "inter": self.inter,
            "intra": self.intra,
        }
