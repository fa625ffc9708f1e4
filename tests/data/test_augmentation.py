import sys

import numpy as np
import pytest
import tensorflow as tf

from kmatch.data.augmentation import augmentation

SIZE = 16


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, size=[16, 4, 4, 3]).astype("float32")
    return tf.image.resize(coarse, [SIZE, SIZE]).numpy()


SEEDS = np.random.default_rng(1).integers(2**31, size=[16, 2])


def augmented(name, images, seeds, parallel=4):
    dataset = tf.data.Dataset.from_tensor_slices((images, seeds))
    dataset = dataset.map(augmentation(name, SIZE), num_parallel_calls=parallel)
    return next(iter(dataset.batch(len(images)))).numpy()


@pytest.mark.parametrize(
    "name",
    ["crop", "color", pytest.param("randaugment", marks=pytest.mark.slow)],
)
def test_what_happens_depends_on_the_image_and_its_seed_alone(name, images):
    first = augmented(name, images, SEEDS)
    # Another order, another number of threads: the same.
    back = augmented(name, images[::-1], SEEDS[::-1], parallel=1)
    np.testing.assert_array_equal(back[::-1], first)
    assert first.shape == images.shape and first.dtype == np.float32
    assert first.min() >= 0 and first.max() <= 255
    changed = np.any(first != images, axis=(1, 2, 3))
    assert changed.mean() > 0.7
    same_image = np.repeat(images[:1], 16, axis=0)
    varied = augmented(name, same_image, SEEDS)
    assert len(np.unique(varied.reshape(16, -1), axis=0)) > 8


def test_both_spellings_of_colour(images):
    np.testing.assert_array_equal(
        augmented("colour", images, SEEDS), augmented("color", images, SEEDS)
    )


def test_without_keras_cv_there_is_a_hint(monkeypatch):
    monkeypatch.setitem(sys.modules, "keras_cv", None)
    with pytest.raises(ImportError, match="pip install keras-cv"):
        augmentation("crop", SIZE)
