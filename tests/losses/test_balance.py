import keras
import numpy as np
import pytest
import tensorflow as tf

import kmatch
from tests.losses.conftest import CLASSES, check_xla
from tests.reference import itmeetsal as reference
from tests.reference.gradients import check_gradients


@pytest.mark.parametrize("tau", [1.0, 4.0])
def test_label_balance_follows_the_paper(batch, weights, tau):
    images, texts, *labels = batch
    check_gradients(
        lambda x, z, w: kmatch.losses.label_balance(x, z, *labels, w, tau),
        lambda x, z, w: reference.label_balance(x, z, *labels, w, tau),
        [images, texts, weights],
    )


def test_the_temperature_is_4_unless_told_otherwise(weights):
    x, z = np.random.default_rng(0).normal(size=[2, 3, 5])
    arguments = x, z, range(3), range(3), weights
    assert float(kmatch.losses.label_balance(*arguments)) == pytest.approx(
        reference.label_balance(*arguments, tau=4), rel=1e-4
    )


def test_collapsed_and_huge_embeddings_stay_finite(weights):
    for embeddings in (tf.zeros([3, 5]), 1e4 * tf.ones([3, 5])):
        with tf.GradientTape() as tape:
            tape.watch(embeddings)
            loss = kmatch.losses.label_balance(
                embeddings, -embeddings, range(3), range(3), weights
            )
        assert np.isfinite(loss)
        assert np.isfinite(tape.gradient(loss, embeddings)).all()


def test_the_layer_looks_at_the_classifier_it_was_given(batch):
    images, texts, *labels = batch
    classifier = kmatch.losses.CMPC(CLASSES)
    loss = kmatch.losses.LabelBalance(classifier, tau=2.0)
    arguments = [tf.constant(x, tf.float32) for x in (images, texts)]
    arguments += [tf.constant(x) for x in labels]
    value = loss(*arguments)
    np.testing.assert_allclose(
        value,
        reference.label_balance(*batch, classifier.kernel.numpy(), tau=2.0),
        rtol=1e-4, atol=1e-6,
    )  # fmt: skip
    assert loss.counts(*arguments[2:]) == classifier.counts(*arguments[2:])
    restored = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(loss)
    )
    restored(*arguments)
    restored.set_weights(loss.get_weights())
    assert float(restored(*arguments)) == float(value)
    assert restored.get_config() == loss.get_config()


def test_label_balance_compiles_with_xla(compiled_batch, weights):
    check_xla(
        lambda *x: kmatch.losses.label_balance(*x, weights), compiled_batch
    )


def test_bad_input():
    with pytest.raises(ValueError, match="takes the kmatch.losses.CMPC"):
        kmatch.losses.LabelBalance(10)
    with pytest.raises(ValueError, match="tau must be above 0"):
        kmatch.losses.LabelBalance(kmatch.losses.CMPC(2), tau=0)
    with pytest.raises(ValueError, match="tau must be above 0"):
        kmatch.losses.label_balance([[1.0]], [[1.0]], [0], [0], [[1.0]], tau=0)
