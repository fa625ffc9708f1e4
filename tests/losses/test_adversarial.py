import keras
import numpy as np
import pytest
import tensorflow as tf

import kmatch
from kmatch.losses.adversarial import modality_accuracy
from tests.reference import itmeetsal as reference
from tests.reference.gradients import check_gradients

NAMES = ["negative_entropy", "modality_classification"]


@pytest.fixture(params=[(1, 1), (4, 4), (3, 7)], ids=str)
def logits(request):
    rng = np.random.default_rng(0)
    return [2 * rng.normal(size=[count, 2]) for count in request.param]


@pytest.mark.parametrize("name", NAMES)
def test_terms_follow_the_paper(logits, name):
    check_gradients(
        getattr(kmatch.losses, name), getattr(reference, name), logits
    )


def test_extremes():
    sure, wrong = np.array([[60.0, -60.0]]), np.array([[-60.0, 60.0]])
    undecided = np.array([[5.0, 5.0]])
    entropy = kmatch.losses.negative_entropy
    loss = kmatch.losses.modality_classification
    assert float(entropy(undecided, undecided)) == pytest.approx(-2 * np.log(2))
    assert float(entropy(sure, wrong)) == pytest.approx(0)
    assert float(loss(undecided, undecided)) == pytest.approx(2 * np.log(2))
    # Image is class 0 and text is class 1.
    assert float(loss(sure, wrong)) == pytest.approx(0)
    assert float(loss(wrong, sure)) == pytest.approx(240)


def test_accuracy_counts_each_modality_for_half():
    image, text = [1.0, 0.0], [0.0, 1.0]
    assert float(modality_accuracy([image], [text] * 5)) == 1
    assert float(modality_accuracy([text], [text] * 5)) == 0.5
    assert float(modality_accuracy([text], [image])) == 0
    assert float(modality_accuracy([[2.0, 2.0]], [[2.0, 2.0]])) == 0.5


@pytest.mark.parametrize(
    "layer",
    [
        kmatch.losses.NegativeEntropy(),
        kmatch.losses.ModalityClassification(),
    ],
)
def test_layers_are_the_functions(layer, logits):
    restored = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(layer)
    )
    expected = getattr(reference, layer.name)(*logits)
    assert float(restored(*logits)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("factor", [1.0, 0.25])
@pytest.mark.parametrize("jit_compile", [False, True])
def test_gradient_reversal(factor, jit_compile):
    layer = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(
            kmatch.losses.GradientReversal(factor)
        )
    )
    assert layer.factor == factor
    x = tf.constant([[1.0, -2.0], [3.0, 0.5]])

    @tf.function(jit_compile=jit_compile)
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x)
            loss = tf.reduce_sum(y**3)
        return y, tape.gradient(loss, x)

    y, gradient = run(x)
    np.testing.assert_array_equal(y, x)
    np.testing.assert_allclose(gradient, -factor * 3 * x**2, rtol=1e-6)


def test_gradient_reversal_survives_in_a_saved_model(tmp_path):
    model = keras.Sequential(
        [keras.Input([3]), kmatch.losses.GradientReversal(0.5)]
    )
    model.save(tmp_path / "reversal.keras")
    loaded = keras.models.load_model(tmp_path / "reversal.keras")
    x = tf.ones([2, 3])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loaded(x)
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(tape.gradient(y, x), -0.5 * np.ones([2, 3]))
