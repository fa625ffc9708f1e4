"""What all losses share: their interface and who matches whom."""

import keras
import tensorflow as tf


class MatchingLoss(keras.layers.Layer):
    """Base of the losses that `Matcher.compile` takes.

    A loss is a layer, since some own weights: it takes the embeddings
    `[n, d]` of images and `[m, d]` of texts and the labels `[n]` and `[m]`
    of both, and gives a scalar. Any `[n, m]` pair with equal labels matches.
    """

    def __init__(self, **kwargs):
        # Logarithms of probabilities have no place in half precision.
        super().__init__(**{**kwargs, "dtype": "float32"})

    def build(
        self,
        image_embeddings_shape,
        text_embeddings_shape,
        image_labels_shape=None,
        text_labels_shape=None,
    ):
        self.built = True

    def counts(self, image_labels: tf.Tensor, text_labels: tf.Tensor):
        """Whether the batch holds anything this loss is defined for."""
        return tf.constant(True)

    @property
    def figures(self) -> tuple[str, ...]:
        """Names of what `observe` gives."""
        return ()

    def observe(
        self, image_labels: tf.Tensor, text_labels: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """What else of the batch is worth logging, by name."""
        return {}

    def compute_output_shape(self, *shapes):
        return ()


def positives(image_labels: tf.Tensor, text_labels: tf.Tensor) -> tf.Tensor:
    """Which image matches which text: bool `[n, m]`, by equal labels.

    >>> from kmatch.losses.base import positives
    >>> positives([0, 1], [0, 1, 1]).numpy()
    array([[ True, False, False],
           [False,  True,  True]])
    """
    image_labels = tf.cast(image_labels, tf.int64)
    text_labels = tf.cast(text_labels, tf.int64)
    return image_labels[:, tf.newaxis] == text_labels[tf.newaxis, :]


def normalize(embeddings: tf.Tensor, axis: int = -1) -> tf.Tensor:
    """Divides by the l2 norm; a zero vector stays zero."""
    return tf.math.l2_normalize(embeddings, axis=axis, epsilon=1e-12)


def mean_of_counted(values: tf.Tensor, counted: tf.Tensor) -> tf.Tensor:
    """Mean of the values that count; 0 where none does."""
    counted = tf.cast(counted, values.dtype)
    return tf.math.divide_no_nan(
        tf.reduce_sum(values * counted), tf.reduce_sum(counted)
    )
