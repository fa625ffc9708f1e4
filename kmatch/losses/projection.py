"""Cross-modal projection matching and classification.

Zhang & Lu, "Deep Cross-Modal Projection Learning for Image-Text Matching",
ECCV 2018.
"""

import keras
import tensorflow as tf

from kmatch.losses.base import (
    MatchingLoss,
    mean_of_counted,
    normalize,
    positives,
)


def cmpm(
    image_embeddings: tf.Tensor,
    text_embeddings: tf.Tensor,
    image_labels: tf.Tensor,
    text_labels: tf.Tensor,
    epsilon: float = 1e-8,
    reverse: bool = False,
    softmax_targets: bool = False,
) -> tf.Tensor:
    """Cross-modal projection matching loss (Eqs 1-5).

    The probability of matching image i to text j is the softmax over j of
    the scalar projection of x_i on the direction of z_j:

        p_ij = exp(x_i · z̄_j) / Σ_k exp(x_i · z̄_k)            (Eq 1)
        q_ij = y_ij / Σ_k y_ik                                  (Eq 2)
        L_i  = Σ_j p_ij (log p_ij − log(q_ij + ε))              (Eq 3)

    averaged over i (Eq 4), plus the same from text to image (Eq 5). At the
    optimum it is 0, however many positives there are. Rows without a
    positive are left out of the mean.

    Args:
        image_embeddings: `[n, d]`, not normalised.
        text_embeddings: `[m, d]`, not normalised.
        image_labels: `[n]`.
        text_labels: `[m]`. What shares a label matches.
        epsilon: Keeps the logarithm of 0 finite.
        reverse: KL(q‖p), Σ q (log(q + ε) − log p), for comparison (Table 5).
        softmax_targets: q_ij = exp(y_ij) / Σ_k exp(y_ik), as Chen et al.
            write it ("Integrating Information Theory and Adversarial
            Learning for Cross-modal Retrieval", Eq 8), where it is L_kl.
            It is nearly uniform: .081 for the positive and .030 for each
            negative of a batch of 32.

    Returns:
        Scalar.

    >>> import kmatch
    >>> x = [[50.0, 0.0], [0.0, 50.0]]
    >>> abs(float(kmatch.losses.cmpm(x, x, [0, 1], [0, 1]))) < 1e-6
    True
    """
    images, texts, positive = _standardize(
        image_embeddings, text_embeddings, image_labels, text_labels
    )
    options = epsilon, reverse, softmax_targets
    return _matching(images, texts, positive, *options) + _matching(
        texts, images, tf.transpose(positive), *options
    )


def _standardize(images, texts, image_labels, text_labels):
    images = tf.cast(images, tf.float32)
    texts = tf.cast(texts, tf.float32)
    return images, texts, positives(image_labels, text_labels)


def _matching(queries, gallery, positive, epsilon, reverse, softmax_targets):
    """One direction: Eqs 1 to 4."""
    scores = tf.matmul(queries, normalize(gallery), transpose_b=True)
    log_p = tf.nn.log_softmax(scores)
    y = tf.cast(positive, scores.dtype)
    if softmax_targets:
        q = tf.nn.softmax(y)
    else:
        q = tf.math.divide_no_nan(y, tf.reduce_sum(y, axis=1, keepdims=True))
    log_q = tf.math.log(q + epsilon)
    if reverse:
        divergence = q * (log_q - log_p)
    else:
        divergence = tf.exp(log_p) * (log_p - log_q)
    return mean_of_counted(
        tf.reduce_sum(divergence, axis=1), tf.reduce_any(positive, axis=1)
    )


def cmpc(
    image_embeddings: tf.Tensor,
    text_embeddings: tf.Tensor,
    image_labels: tf.Tensor,
    text_labels: tf.Tensor,
    weights: tf.Tensor,
    normalize_weights: bool = True,
    project: bool = True,
) -> tf.Tensor:
    """Cross-modal projection classification loss (Eqs 7-10).

    For each matching pair (i, j), the projection of x_i on the direction of
    z_j is classified by a softmax without bias:

        x̂_ij = (x_i · z̄_j) z̄_j
        L_ipt = mean over pairs of −log softmax(Wᵀ x̂_ij)_y      (Eq 8)

    plus the same with the roles exchanged (Eqs 9, 10). Pairs whose label has
    no column in the weights are left out.

    Args:
        image_embeddings: `[n, d]`, not normalised.
        text_embeddings: `[m, d]`, not normalised.
        image_labels: `[n]`.
        text_labels: `[m]`. What shares a label is a pair.
        weights: `[d, classes]`.
        normalize_weights: Whether each class's weights have norm 1 (normW in
            Table 6).
        project: Whether to classify the projection (CMP in Table 6), or else
            the embedding itself (Eq 7).

    Returns:
        Scalar; 0 if there is no pair with a class.

    >>> import kmatch
    >>> x = [[50.0, 0.0], [0.0, 50.0]]
    >>> loss = kmatch.losses.cmpc(x, x, [0, 1], [0, 1], weights=x)
    >>> abs(float(loss)) < 1e-6
    True
    """
    *logits, label, count = paired_logits(
        image_embeddings, text_embeddings, image_labels, text_labels,
        weights, normalize_weights, project,
    )  # fmt: skip
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
    total = tf.add_n([tf.reduce_sum(cross_entropy(label, x)) for x in logits])
    return tf.math.divide_no_nan(total, count)


def paired_logits(
    image_embeddings: tf.Tensor,
    text_embeddings: tf.Tensor,
    image_labels: tf.Tensor,
    text_labels: tf.Tensor,
    weights: tf.Tensor,
    normalize_weights: bool = True,
    project: bool = True,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """What the label classifier gives for each pair that has a class.

    The arguments are those of `cmpc`.

    Returns:
        The logits `[pairs, classes]` of the projections of images on texts
        and of texts on images, the pairs' labels `[pairs]`, and the number
        of pairs.
    """
    images, texts, positive = _standardize(
        image_embeddings, text_embeddings, image_labels, text_labels
    )
    weights = tf.cast(weights, tf.float32)
    if normalize_weights:
        weights = normalize(weights, axis=0)
    labels = tf.cast(image_labels, tf.int64)
    known = (labels >= 0) & (labels < tf.shape(weights, tf.int64)[1])
    pair = positive & known[:, tf.newaxis]
    image, text = tf.unstack(tf.where(pair), axis=1)
    return (
        _logits(images, texts, image, text, weights, project),
        _logits(texts, images, text, image, weights, project),
        tf.gather(labels, image),
        # Counted in the mask: XLA pads the pairs to the largest possible
        # number, and their length is that of the padding.
        tf.math.count_nonzero(pair, dtype=images.dtype),
    )


def _logits(queries, targets, query, target, weights, project):
    """One direction: of Eq 8 with `project`, of Eq 7 without."""
    if not project:
        return tf.gather(queries @ weights, query)
    # Wᵀ x̂_ij = (x_i · z̄_j) · Wᵀ z̄_j: no projection is ever stored.
    targets = normalize(targets)
    lengths = tf.reduce_sum(
        tf.gather(queries, query) * tf.gather(targets, target), axis=1
    )
    return lengths[:, tf.newaxis] * tf.gather(targets @ weights, target)


@keras.saving.register_keras_serializable(package="kmatch")
class CMPM(MatchingLoss):
    """Cross-modal projection matching loss; see `kmatch.losses.cmpm`.

    Args:
        epsilon: Keeps the logarithm of 0 finite.
        reverse: KL(q‖p) instead of KL(p‖q).
        softmax_targets: q as Chen et al. write it; nearly uniform.

    >>> import kmatch
    >>> loss = kmatch.losses.CMPM()
    >>> loss.name
    'cmpm'
    """

    def __init__(
        self,
        epsilon: float = 1e-8,
        reverse: bool = False,
        softmax_targets: bool = False,
        name: str = "cmpm",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        self.epsilon = epsilon
        self.reverse = reverse
        self.softmax_targets = softmax_targets

    def call(
        self, image_embeddings, text_embeddings, image_labels, text_labels
    ):
        return cmpm(
            image_embeddings, text_embeddings, image_labels, text_labels,
            self.epsilon, self.reverse, self.softmax_targets,
        )  # fmt: skip

    def get_config(self):
        return {
            **super().get_config(),
            "epsilon": self.epsilon,
            "reverse": self.reverse,
            "softmax_targets": self.softmax_targets,
        }


@keras.saving.register_keras_serializable(package="kmatch")
class CMPC(MatchingLoss):
    """Cross-modal projection classification; see `kmatch.losses.cmpc`.

    It owns the classifier's weights, which both directions share. They are
    trained and saved with the model and are not exported.

    Args:
        num_classes: Number of training labels, 0..num_classes-1. Others are
            skipped.
        normalize_weights: Whether each class's weights have norm 1.
        project: Whether to classify the projection.

    >>> import kmatch
    >>> loss = kmatch.losses.CMPC(num_classes=10)
    >>> loss.build((None, 4), (None, 4))
    >>> loss.kernel.path
    'cmpc/kernel'
    """

    def __init__(
        self,
        num_classes: int,
        normalize_weights: bool = True,
        project: bool = True,
        name: str = "cmpc",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        self.num_classes = int(num_classes)
        self.normalize_weights = normalize_weights
        self.project = project

    def build(self, image_embeddings_shape, *shapes, **named_shapes):
        self.kernel = self.add_weight(
            shape=(image_embeddings_shape[-1], self.num_classes),
            initializer="glorot_uniform",
            name="kernel",
        )
        self.built = True

    def counts(self, image_labels, text_labels):
        known = (image_labels >= 0) & (image_labels < self.num_classes)
        positive = positives(image_labels, text_labels)
        return tf.reduce_any(positive & known[:, tf.newaxis])

    def call(
        self, image_embeddings, text_embeddings, image_labels, text_labels
    ):
        return cmpc(
            image_embeddings, text_embeddings, image_labels, text_labels,
            self.kernel, self.normalize_weights, self.project,
        )  # fmt: skip

    def get_config(self):
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "normalize_weights": self.normalize_weights,
            "project": self.project,
        }
