"""A label classifier that does not favour one modality.

Chen et al., "Integrating Information Theory and Adversarial Learning for
Cross-modal Retrieval", Pattern Recognition 2021.
"""

import keras
import tensorflow as tf

from kmatch.losses.base import MatchingLoss
from kmatch.losses.projection import CMPC, paired_logits


def label_balance(
    image_embeddings: tf.Tensor,
    text_embeddings: tf.Tensor,
    image_labels: tf.Tensor,
    text_labels: tf.Tensor,
    weights: tf.Tensor,
    tau: float = 4.0,
    epsilon: float = 1e-8,
    normalize_weights: bool = True,
    project: bool = True,
) -> tf.Tensor:
    """Divergence between what both modalities are classified as, L_di (Eq 11).

    An image has several captions, so that the label classifier sees more
    text and comes to prefer it. For each matching pair, this term draws
    together what the classifier of L_ce (`kmatch.losses.cmpc`) makes of the
    image's projection on the text and of the text's on the image:

        p = softmax(Wᵀ ẑ^{i→t} / τ),  p' = softmax(Wᵀ ẑ^{t→i} / τ)
        L_di = τ² · mean over pairs of
               Σ_c p log(p / (p' + ε)) + p' log(p' / (p + ε))

    with the columns of W normalised. τ² makes up for the gradients, which
    shrink as 1/τ². Pairs whose label has no column in the weights are left
    out.

    Args:
        image_embeddings: `[n, d]`, not normalised.
        text_embeddings: `[m, d]`, not normalised.
        image_labels: `[n]`.
        text_labels: `[m]`. What shares a label is a pair.
        weights: `[d, classes]`, those of the label classifier.
        tau: Temperature (Table 5).
        epsilon: Keeps the logarithm of 0 finite.
        normalize_weights: As for `kmatch.losses.cmpc`.
        project: As for `kmatch.losses.cmpc`.

    Returns:
        Scalar; 0 if there is no pair with a class.

    >>> import kmatch
    >>> x, w = [[3.0, 1.0], [0.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]]
    >>> loss = kmatch.losses.label_balance(x, x, [0, 1], [0, 1], weights=w)
    >>> abs(float(loss)) < 1e-6  # both modalities are classified alike
    True
    """
    _check_tau(tau)
    image_logits, text_logits, _, count = paired_logits(
        image_embeddings, text_embeddings, image_labels, text_labels,
        weights, normalize_weights, project,
    )  # fmt: skip
    image_log_p = tf.nn.log_softmax(image_logits / tau)
    text_log_p = tf.nn.log_softmax(text_logits / tau)
    total = _divergence(image_log_p, text_log_p, epsilon) + _divergence(
        text_log_p, image_log_p, epsilon
    )
    return tau**2 * tf.math.divide_no_nan(total, count)


def _check_tau(tau):
    if not tau > 0:
        raise ValueError(f"tau must be above 0. Received: {tau}.")


def _divergence(log_p, log_q, epsilon):
    """Sum over pairs of KL(p‖q)."""
    log_q = tf.math.log(tf.exp(log_q) + epsilon)
    return tf.reduce_sum(tf.exp(log_p) * (log_p - log_q))


@keras.saving.register_keras_serializable(package="kmatch")
class LabelBalance(MatchingLoss):
    """Balance of the label classifier; see `kmatch.losses.label_balance`.

    It owns no weights but looks at those of a `CMPC`, beside which it is
    used:

    ```python
    classifier = kmatch.losses.CMPC(num_classes=10)
    model.compile(loss=[classifier, kmatch.losses.LabelBalance(classifier)])
    ```

    Args:
        classifier: The `CMPC` whose classifier is balanced.
        tau: Temperature.
        epsilon: Keeps the logarithm of 0 finite.

    >>> import kmatch
    >>> classifier = kmatch.losses.CMPC(num_classes=10)
    >>> kmatch.losses.LabelBalance(classifier).name
    'label_balance'
    """

    def __init__(
        self,
        classifier: CMPC,
        tau: float = 4.0,
        epsilon: float = 1e-8,
        name: str = "label_balance",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        if not isinstance(classifier, CMPC):
            raise ValueError(
                "LabelBalance takes the kmatch.losses.CMPC whose classifier "
                f"it balances. Received: {classifier!r}."
            )
        _check_tau(tau)
        self.classifier = classifier
        self.tau = tau
        self.epsilon = epsilon

    def build(self, image_embeddings_shape, *shapes, **named_shapes):
        if not self.classifier.built:
            self.classifier.build(image_embeddings_shape)
        self.built = True

    def counts(self, image_labels, text_labels):
        return self.classifier.counts(image_labels, text_labels)

    def call(
        self, image_embeddings, text_embeddings, image_labels, text_labels
    ):
        return label_balance(
            image_embeddings, text_embeddings, image_labels, text_labels,
            self.classifier.kernel, self.tau, self.epsilon,
            self.classifier.normalize_weights, self.classifier.project,
        )  # fmt: skip

    def get_config(self):
        return {
            **super().get_config(),
            "classifier": keras.saving.serialize_keras_object(self.classifier),
            "tau": self.tau,
            "epsilon": self.epsilon,
        }

    @classmethod
    def from_config(cls, config):
        classifier = keras.saving.deserialize_keras_object(config["classifier"])
        return cls(**{**config, "classifier": classifier})
