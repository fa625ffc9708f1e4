"""Batches that every loss has to cope with."""

import numpy as np
import pytest
import tensorflow as tf

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
    "no negative at all": ([2, 2], [2, 2, 2]),
    "labels without a class": ([0, 7, 9], [0, 7, 9]),
}


@pytest.fixture(params=BATCHES)
def batch(request):
    return make_batch(request.param)


@pytest.fixture(params=["rectangular, several texts", "without a positive"])
def compiled_batch(request):
    """One of the few that XLA, which is slow to compile, is tried with."""
    return make_batch(request.param)


def make_batch(name):
    image_labels, text_labels = map(np.array, BATCHES[name])
    rng = np.random.default_rng(0)
    images = rng.normal(size=[len(image_labels), 5])
    texts = rng.normal(size=[len(text_labels), 5])
    return images, texts, image_labels, text_labels


@pytest.fixture
def weights():
    return np.random.default_rng(1).normal(size=[5, CLASSES])


def check_xla(loss, batch):
    """Compares value and gradients with and without XLA."""
    images, texts, *labels = batch
    # Labels are inputs too: what they select has no fixed size.
    arguments = [tf.constant(x, tf.float32) for x in (images, texts)]
    arguments += [tf.constant(x) for x in labels]

    def value_and_gradients(images, texts, *labels):
        with tf.GradientTape() as tape:
            tape.watch([images, texts])
            value = loss(images, texts, *labels)
        return value, *tape.gradient(value, [images, texts])

    plain = value_and_gradients(*arguments)
    compiled = tf.function(value_and_gradients, jit_compile=True)(*arguments)
    for ours, xla in zip(plain, compiled, strict=True):
        np.testing.assert_allclose(xla, ours, rtol=1e-4, atol=1e-6)
