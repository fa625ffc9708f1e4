import keras
import numpy as np
import pytest
import tensorflow as tf

import kmatch
from tests.reference import projection as reference
from tests.reference.gradients import numeric_gradient

CLASSES = 4

# Labels of images and of texts: square and rectangular batches, one and
# several positives, rows without a positive, labels without a class.
BATCHES = {
    "square, one positive each": ([0, 1, 2], [0, 1, 2]),
    "square, shared labels": ([0, 0, 1, 1], [0, 1, 0, 1]),
    "rectangular, several texts": ([0, 1], [0, 0, 1, 1, 1]),
    "rectangular, several images": ([0, 0, 1, 2, 2], [0, 1, 2]),
    "batch of one": ([3], [3]),
    "without a positive": ([0, 1, 2], [1, 1, 3]),
    "no positive at all": ([0, 1], [2, 3]),
    "labels without a class": ([0, 7, 9], [0, 7, 9]),
}


@pytest.fixture(params=BATCHES.values(), ids=BATCHES)
def batch(request):
    image_labels, text_labels = map(np.array, request.param)
    rng = np.random.default_rng(0)
    images = rng.normal(size=[len(image_labels), 5])
    texts = rng.normal(size=[len(text_labels), 5])
    return images, texts, image_labels, text_labels


@pytest.fixture
def weights():
    return np.random.default_rng(1).normal(size=[5, CLASSES])


def check_gradients(ours, slow, arrays):
    """Compares values, and gradients by each of the arrays."""
    tensors = [tf.constant(array, tf.float32) for array in arrays]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        value = ours(*tensors)
    np.testing.assert_allclose(value, slow(*arrays), rtol=1e-5, atol=1e-5)
    gradients = tape.gradient(
        value, tensors, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    for i, gradient in enumerate(gradients):
        expected = numeric_gradient(
            lambda array, i=i: slow(*arrays[:i], array, *arrays[i + 1 :]),
            arrays[i],
        )
        np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("reverse", [False, True])
def test_cmpm_follows_the_paper(batch, reverse):
    images, texts, *labels = batch
    check_gradients(
        lambda x, z: kmatch.losses.cmpm(x, z, *labels, reverse=reverse),
        lambda x, z: reference.cmpm(x, z, *labels, reverse=reverse),
        [images, texts],
    )


@pytest.mark.parametrize("normalize_weights", [False, True])
@pytest.mark.parametrize("project", [False, True])
def test_cmpc_follows_the_paper(batch, weights, normalize_weights, project):
    images, texts, *labels = batch
    flags = {"normalize_weights": normalize_weights, "project": project}
    check_gradients(
        lambda x, z, w: kmatch.losses.cmpc(x, z, *labels, w, **flags),
        lambda x, z, w: reference.cmpc(x, z, *labels, w, **flags),
        [images, texts, weights],
    )


@pytest.mark.parametrize("n, expected", [(16, 14.5), (32, 14.4), (64, 14.0)])
def test_cmpm_of_collapsed_embeddings(n, expected):
    constant = np.ones([n, 8])
    loss = kmatch.losses.cmpm(constant, constant, range(n), range(n))
    assert float(loss) / 2 == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize("captions", [1, 2, 5])
def test_cmpm_is_zero_at_the_optimum_for_any_number_of_positives(captions):
    images = 100 * np.eye(4)
    texts = np.repeat(images, captions, axis=0)
    loss = kmatch.losses.cmpm(
        images, texts, range(4), np.repeat(range(4), captions)
    )
    assert float(loss) == pytest.approx(0, abs=1e-6)


def test_zero_embeddings_have_finite_losses_and_gradients(weights):
    zeros = tf.zeros([3, 5])
    with tf.GradientTape() as tape:
        tape.watch(zeros)
        loss = kmatch.losses.cmpm(zeros, zeros, [0, 1, 2], [0, 1, 2])
        loss += kmatch.losses.cmpc(zeros, zeros, [0, 1, 2], [0, 1, 2], weights)
    assert np.isfinite(loss)
    assert np.isfinite(tape.gradient(loss, zeros)).all()


def test_large_norms_do_not_overflow(weights):
    large = 1e4 * np.random.default_rng(0).normal(size=[4, 5])
    labels = [0, 1, 2, 3]
    assert np.isfinite(kmatch.losses.cmpm(large, large, labels, labels))
    assert np.isfinite(
        kmatch.losses.cmpc(large, large, labels, labels, weights)
    )


@pytest.mark.parametrize(
    "loss",
    [
        kmatch.losses.CMPM(epsilon=1e-6, reverse=True),
        kmatch.losses.CMPC(CLASSES, normalize_weights=False, project=False),
    ],
)
def test_layers_come_back_from_their_config(loss, batch):
    restored = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(loss)
    )
    images, texts, *labels = batch
    arguments = [tf.constant(x, tf.float32) for x in (images, texts)]
    arguments += [tf.constant(x) for x in labels]
    value = loss(*arguments)
    restored(*arguments)
    restored.set_weights(loss.get_weights())
    assert float(restored(*arguments)) == float(value)
    assert restored.get_config() == loss.get_config()


def test_cmpc_counts_only_labels_it_has_a_class_for():
    loss = kmatch.losses.CMPC(num_classes=2)
    assert bool(loss.counts(tf.constant([1, 5]), tf.constant([5, 1])))
    assert not bool(loss.counts(tf.constant([1, 5]), tf.constant([5, 0])))


@pytest.mark.parametrize("name", ["cmpm", "cmpc"])
def test_losses_compile_with_xla(name, batch, weights):
    images, texts, *labels = batch
    extra = [weights] if name == "cmpc" else []

    def loss(*arguments):
        return getattr(kmatch.losses, name)(*arguments, *extra)

    # Labels are inputs too: what they select has no fixed size.
    arguments = [tf.constant(x, tf.float32) for x in (images, texts)]
    arguments += [tf.constant(x) for x in labels]
    for function in (loss, with_gradients(loss)):
        plain = tf.nest.flatten(function(*arguments))
        compiled = tf.function(function, jit_compile=True)(*arguments)
        for ours, xla in zip(plain, tf.nest.flatten(compiled), strict=True):
            np.testing.assert_allclose(xla, ours, rtol=1e-4, atol=1e-6)


def with_gradients(loss):
    def gradients(images, texts, *labels):
        with tf.GradientTape() as tape:
            tape.watch([images, texts])
            value = loss(images, texts, *labels)
        return tape.gradient(value, [images, texts])

    return gradients
