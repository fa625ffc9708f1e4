"""Text towers."""

import keras
from keras import ops

from kmatch.text.tokenizer import PADDING, Tokenizer
from kmatch.towers.tower import Tower


def bilstm(
    tokenizer: Tokenizer,
    units: int = 512,
    embedding_dim: int = 512,
    dropout: float = 0.3,
) -> Tower:
    """Bi-directional LSTM, max-pooled over the words (Zhang & Lu, sec. 3.1).

    Dropout stands outside the LSTM, on its inputs and outputs, so that
    cuDNN's kernel stays usable.

    Args:
        tokenizer: What turns captions into token ids.
        units: Units per direction.
        embedding_dim: Size of the word embedding.
        dropout: Rate of dropout.

    Returns:
        A `Tower` that gives `2 * units` features.

    >>> import kmatch
    >>> tokenizer = kmatch.text.Tokenizer(["a", "dog"])
    >>> kmatch.towers.bilstm(tokenizer, units=8).output_shape
    (None, 16)
    """
    tokens = keras.Input([None], dtype="int32", name="tokens")
    x = keras.layers.Embedding(
        len(tokenizer.vocabulary), embedding_dim, mask_zero=PADDING == 0
    )(tokens)
    x = keras.layers.Dropout(dropout)(x)
    x = keras.layers.Bidirectional(
        keras.layers.LSTM(units, return_sequences=True)
    )(x)
    x = keras.layers.Dropout(dropout)(x)
    x = MaskedMaxPooling()(x)
    return Tower(keras.Model(tokens, x, name="bilstm"), tokenizer=tokenizer)


@keras.saving.register_keras_serializable(package="kmatch")
class MaskedMaxPooling(keras.layers.Layer):
    """Maximum over time that leaves padding out.

    Keras's `GlobalMaxPooling1D` ignores masks, which makes the result depend
    on what else is in the batch.

    >>> import numpy as np
    >>> from kmatch.towers.text import MaskedMaxPooling
    >>> steps = np.array([[[-2.0], [-1.0], [0.0]]])
    >>> mask = np.array([[True, True, False]])
    >>> float(MaskedMaxPooling()(steps, mask=mask)[0, 0])
    -1.0
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs, mask=None):
        if mask is not None:
            # Below whatever an LSTM gives, and within float16.
            inputs = ops.where(mask[..., None], inputs, -1e4)
        return ops.max(inputs, axis=1)

    def compute_mask(self, inputs, mask=None):
        return None

    def compute_output_shape(self, input_shape):
        return input_shape[0], input_shape[2]
