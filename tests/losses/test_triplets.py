import keras
import numpy as np
import pytest
import tensorflow as tf

import kmatch
from kmatch.losses.triplets import triplet_anchors
from tests.losses.conftest import check_xla
from tests.reference import itmeetsal as reference
from tests.reference.gradients import check_gradients

DIRECTIONS = [(True, True), (True, False), (False, True)]


@pytest.mark.parametrize("inter, intra", DIRECTIONS)
@pytest.mark.parametrize("margin", [0.1, 0.5])
def test_triplet_follows_the_paper(batch, margin, inter, intra):
    images, texts, *labels = batch
    check_gradients(
        lambda x, z: kmatch.losses.triplet(x, z, *labels, margin, inter, intra),
        lambda x, z: reference.triplet(x, z, *labels, margin, inter, intra),
        [images, texts],
    )


def test_the_margin_is_half_unless_told_otherwise(batch):
    assert float(kmatch.losses.triplet(*batch)) == pytest.approx(
        reference.triplet(*batch, margin=0.5), rel=1e-4, abs=1e-6
    )


def test_collapsed_embeddings_lose_the_margin_in_every_direction():
    same = tf.ones([6, 4])
    labels = [0, 0, 1, 1, 2, 2]
    with tf.GradientTape() as tape:
        tape.watch(same)
        loss = kmatch.losses.triplet(same, same, labels, labels, margin=0.5)
    assert float(loss) == pytest.approx(4 * 0.5)
    assert np.isfinite(tape.gradient(loss, same)).all()
    zeros = tf.zeros([6, 4])
    loss = kmatch.losses.triplet(zeros, zeros, labels, labels, margin=0.5)
    assert float(loss) == pytest.approx(4 * 0.5)


def test_ties_lose_what_either_would():
    # Two positives and two negatives equally far.
    anchor, near, far = [1.0, 0.0], [0.6, 0.8], [0.8, 0.6]
    loss = kmatch.losses.triplet(
        [anchor], [near, near, far, far], [0], [0, 0, 1, 1],
        margin=0.5, intra=False,
    )  # fmt: skip
    # 0.5 - 0.6 + 0.8 for the image; its texts have no negative among images.
    assert float(loss) == pytest.approx(0.7)


def test_anchors_that_count():
    def anchors(*arguments, **kwargs):
        counted = triplet_anchors(*arguments, **kwargs)
        return {direction: int(n) for direction, n in counted.items()}

    images, texts = [0, 1, 2], [0, 0, 1, 5]
    expected = {"i2t": 2, "t2i": 3, "i2i": 0, "t2t": 2}
    assert anchors(images, texts) == expected
    assert anchors([3], [3]) == {"i2t": 1, "t2i": 1, "i2i": 0, "t2t": 0}
    assert set(anchors(images, texts, intra=False)) == {"i2t", "t2i"}
    layer = kmatch.losses.Triplet(inter=False)
    assert layer.figures == ("i2i_anchors", "t2t_anchors")
    assert tuple(layer.observe(images, texts)) == layer.figures


def test_the_layer_comes_back_from_its_config(batch):
    loss = kmatch.losses.Triplet(margin=0.3, inter=True, intra=False)
    restored = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(loss)
    )
    assert restored.get_config() == loss.get_config()
    arguments = [tf.constant(x, tf.float32) for x in batch[:2]]
    arguments += [tf.constant(x) for x in batch[2:]]
    expected = reference.triplet(*batch, margin=0.3, intra=False)
    np.testing.assert_allclose(restored(*arguments), expected, atol=1e-6)


def test_triplet_compiles_with_xla(compiled_batch):
    check_xla(kmatch.losses.triplet, compiled_batch)


def test_neither_inter_nor_intra_is_refused():
    with pytest.raises(ValueError, match="not neither"):
        kmatch.losses.triplet([[1.0]], [[1.0]], [0], [0], 0.5, False, False)
