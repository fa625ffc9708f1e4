"""The game between the encoders and a discriminator of modalities.

Chen et al., "Integrating Information Theory and Adversarial Learning for
Cross-modal Retrieval", Pattern Recognition 2021. The discriminator gives two
logits for each embedding: class 0 is an image, class 1 a text.
"""

import keras
import tensorflow as tf

IMAGE_CLASS, TEXT_CLASS = 0, 1


def negative_entropy(
    image_logits: tf.Tensor, text_logits: tf.Tensor
) -> tf.Tensor:
    """How sure the discriminator is, L_s (Eq 4).

    With P the softmax of the logits,

        L_s = mean over images of Σ_m P_m log P_m
            + mean over texts  of Σ_m P_m log P_m

    from 0, where it is sure of each, down to −2·ln 2, where it cannot tell
    any. The encoders minimise it.

    Args:
        image_logits: `[n, 2]`, what the discriminator gives for images.
        text_logits: `[m, 2]`, what it gives for texts.

    Returns:
        Scalar, in nats.

    >>> import kmatch
    >>> undecided = [[3.0, 3.0]]
    >>> float(kmatch.losses.negative_entropy(undecided, undecided))
    -1.3862943649291992
    """
    return _mean_log_p(image_logits) + _mean_log_p(text_logits)


def _mean_log_p(logits):
    log_p = tf.nn.log_softmax(tf.cast(logits, tf.float32))
    return tf.reduce_mean(tf.reduce_sum(tf.exp(log_p) * log_p, axis=1))


def modality_classification(
    image_logits: tf.Tensor, text_logits: tf.Tensor
) -> tf.Tensor:
    """Cross-entropy of the discriminator, L_c (Eq 5).

        L_c = − mean over images of log P_0 − mean over texts of log P_1

    2·ln 2 where it cannot tell any, and 0 where it is right and sure of each.
    The discriminator minimises it. Each modality has its own mean, so that
    the one with more in a batch has no more say.

    Args:
        image_logits: `[n, 2]`, what the discriminator gives for images.
        text_logits: `[m, 2]`, what it gives for texts.

    Returns:
        Scalar, in nats.

    >>> import kmatch
    >>> undecided = [[3.0, 3.0]]
    >>> float(kmatch.losses.modality_classification(undecided, undecided))
    1.3862943649291992
    """
    image_log_p = tf.nn.log_softmax(tf.cast(image_logits, tf.float32))
    text_log_p = tf.nn.log_softmax(tf.cast(text_logits, tf.float32))
    return -tf.reduce_mean(image_log_p[:, IMAGE_CLASS]) - tf.reduce_mean(
        text_log_p[:, TEXT_CLASS]
    )


def modality_accuracy(
    image_logits: tf.Tensor, text_logits: tf.Tensor
) -> tf.Tensor:
    """How often the discriminator is right, from 0 to 1.

    Each modality counts for half of it, so that chance is 0.5 whatever the
    batch holds. A tie is half right.

    >>> from kmatch.losses.adversarial import modality_accuracy
    >>> float(modality_accuracy([[2.0, 1.0]], [[2.0, 1.0], [0.0, 0.0]]))
    0.625
    """
    right = [
        0.5 * (1 + tf.sign(logits[:, own] - logits[:, other]))
        for logits, own, other in (
            (tf.cast(image_logits, tf.float32), IMAGE_CLASS, TEXT_CLASS),
            (tf.cast(text_logits, tf.float32), TEXT_CLASS, IMAGE_CLASS),
        )
    ]
    return 0.5 * tf.add_n([tf.reduce_mean(x) for x in right])


class _DiscriminatorLoss(keras.layers.Layer):
    """A function of the logits of both modalities, as a layer."""

    function = None

    def __init__(self, **kwargs):
        super().__init__(**{**kwargs, "dtype": "float32"})

    def call(self, image_logits, text_logits):
        return type(self).function(image_logits, text_logits)

    def compute_output_shape(self, *shapes):
        return ()


@keras.saving.register_keras_serializable(package="kmatch")
class NegativeEntropy(_DiscriminatorLoss):
    """How sure the discriminator is; see `kmatch.losses.negative_entropy`.

    >>> import numpy as np
    >>> import kmatch
    >>> undecided = np.zeros([4, 2])
    >>> float(kmatch.losses.NegativeEntropy()(undecided, undecided))
    -1.3862943649291992
    """

    function = staticmethod(negative_entropy)

    def __init__(self, name: str = "negative_entropy", **kwargs):
        super().__init__(name=name, **kwargs)


@keras.saving.register_keras_serializable(package="kmatch")
class ModalityClassification(_DiscriminatorLoss):
    """The discriminator's loss; see `kmatch.losses.modality_classification`.

    >>> import numpy as np
    >>> import kmatch
    >>> undecided = np.zeros([4, 2])
    >>> float(kmatch.losses.ModalityClassification()(undecided, undecided))
    1.3862943649291992
    """

    function = staticmethod(modality_classification)

    def __init__(self, name: str = "modality_classification", **kwargs):
        super().__init__(name=name, **kwargs)


@keras.saving.register_keras_serializable(package="kmatch")
class GradientReversal(keras.layers.Layer):
    """Gives its input, and turns the gradient around (Ganin & Lempitsky).

    What comes before the layer is trained against what comes after it.

    Args:
        factor: λ: gradients are multiplied by −λ.

    >>> import tensorflow as tf
    >>> import kmatch
    >>> x = tf.constant([1.0, 2.0])
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = kmatch.losses.GradientReversal(0.5)(x)
    >>> y.numpy(), tape.gradient(y, x).numpy()
    (array([1., 2.], dtype=float32), array([-0.5, -0.5], dtype=float32))
    """

    def __init__(self, factor: float = 1.0, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def call(self, inputs):
        @tf.custom_gradient
        def reverse(x):
            return tf.identity(x), lambda gradient: -self.factor * gradient

        return reverse(inputs)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "factor": self.factor}
