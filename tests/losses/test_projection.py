import keras
import numpy as np
import pytest
import tensorflow as tf

import kmatch
from tests.losses.conftest import CLASSES, check_xla
from tests.reference import projection as reference
from tests.reference.gradients import check_gradients


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("softmax_targets", [False, True])
def test_cmpm_follows_the_paper(batch, reverse, softmax_targets):
    images, texts, *labels = batch
    flags = {"reverse": reverse, "softmax_targets": softmax_targets}
    check_gradients(
        lambda x, z: kmatch.losses.cmpm(x, z, *labels, **flags),
        lambda x, z: reference.cmpm(x, z, *labels, **flags),
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
        kmatch.losses.CMPM(1e-6, reverse=True, softmax_targets=True),
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
def test_losses_compile_with_xla(name, compiled_batch, weights):
    extra = [weights] if name == "cmpc" else []
    check_xla(
        lambda *x: getattr(kmatch.losses, name)(*x, *extra), compiled_batch
    )
