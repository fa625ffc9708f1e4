import keras
import numpy as np
import pytest

import kmatch


@pytest.fixture(scope="module")
def tower(tokenizer):
    return kmatch.towers.bilstm(tokenizer, units=8, embedding_dim=8)


def test_a_caption_does_not_depend_on_its_batch(tower, tokenizer):
    caption = "a big red circle above a small blue star"
    long = " ".join(["the tiny green box"] * 25)
    alone = tower(tokenizer([caption]))[0]
    together = tower(tokenizer([caption, long]))[0]
    np.testing.assert_allclose(alone, together, atol=1e-6)


def test_the_maximum_is_over_words_alone(tower):
    # All states below zero: an unmasked maximum would give the padding's 0.
    tokens = np.array([[2, 3, 0, 0]])
    states = tower.model.layers[-2].output
    lstm = keras.Model(tower.model.inputs[0], states)
    expected = np.asarray(lstm(tokens))[0, :2].max(axis=0)
    np.testing.assert_allclose(tower(tokens)[0], expected, atol=1e-6)
    assert (expected < 0).any()


def test_dropout_is_outside_the_lstm(tower):
    lstm = tower.model.layers[3].forward_layer
    assert lstm.dropout == lstm.recurrent_dropout == 0
    rates = [
        layer.rate for layer in tower.model.layers if hasattr(layer, "rate")
    ]
    assert rates == [0.3, 0.3]
