"""Augmentation: functions of one image and a seed, by name.

Flipping is written out here; the stronger ones are keras-cv's layers, which
draw their random numbers from a state that all images share. Here they draw
from each image's seed instead, so that what happens to an image depends on
nothing else, however many are worked on at a time.
"""

from collections.abc import Callable

import keras
import tensorflow as tf


def is_mirrored(seed: tf.Tensor) -> tf.Tensor:
    """Whether `"flip"` mirrors the image that has this seed."""
    return tf.random.stateless_uniform([], seed) < 0.5


def flip(image: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Mirrors every other image."""
    return tf.cond(
        is_mirrored(seed),
        lambda: tf.image.flip_left_right(image),
        lambda: image,
    )


def _randaugment(layers, image_size):
    """RandAugment (Cubuk et al., 2020) with two operations per image."""
    return [
        layers.RandAugment(
            value_range=(0, 255), augmentations_per_image=2, magnitude=0.3
        )
    ]


def _crop(layers, image_size):
    """A random part of the image, resized (Szegedy et al., 2015)."""
    return [
        layers.RandomCropAndResize(
            target_size=(image_size, image_size),
            crop_area_factor=(0.5, 1.0),
            aspect_ratio_factor=(3 / 4, 4 / 3),
        )
    ]


def _color(layers, image_size):
    """Brightness, contrast, saturation and hue (Howard, 2013)."""
    return [
        layers.RandomBrightness(0.2, value_range=(0, 255)),
        layers.RandomContrast(value_range=(0, 255), factor=0.2),
        layers.RandomSaturation((0.4, 0.6)),
        layers.RandomHue(0.05, value_range=(0, 255)),
    ]


KERAS_CV = {
    "randaugment": _randaugment,
    "crop": _crop,
    "color": _color,
    "colour": _color,
}
NAMES = ("flip", *KERAS_CV)


def augmentation(
    augment: str | Callable | None, image_size: int
) -> Callable | None:
    """Returns the function that a name stands for.

    Args:
        augment: A name, a function of `(image, seed)`, or None.
        image_size: Height and width of the images.
    """
    if augment is None or callable(augment):
        return augment
    if augment == "flip":
        return flip
    if augment not in NAMES:
        raise ValueError(
            f"augment must be one of {', '.join(NAMES)}, a function of "
            f"(image, seed), or None. Received: {augment!r}."
        )
    return _from_keras_cv(augment, image_size)


def _from_keras_cv(name, image_size):
    try:
        import keras_cv
    except ImportError:
        raise ImportError(
            f"augment={name!r} comes from keras-cv: pip install keras-cv"
        ) from None
    layers = KERAS_CV[name](keras_cv.layers, image_size)
    random = _Stateless()
    for layer in layers:
        _draw_from(random, layer, keras_cv.core)

    def apply(image, seed):
        random.begin(seed)
        for layer in layers:
            image = layer(image)
        # Some operations overshoot.
        image = tf.clip_by_value(image, 0.0, 255.0)
        return tf.ensure_shape(image, [image_size, image_size, 3])

    return apply


class _Stateless:
    """Random numbers from a seed: what layers use of `tf.random.Generator`."""

    def begin(self, seed):
        """Starts anew; called when a graph is traced, not when it runs."""
        self._seed = tf.cast(seed, tf.int64)
        self._draws = 0

    def _next(self):
        self._draws += 1
        return self._seed + tf.constant([0, 2**32 * self._draws], tf.int64)

    def uniform(self, shape, minval=0.0, maxval=1.0, dtype=tf.float32):
        return tf.random.stateless_uniform(
            shape, self._next(), minval, maxval, dtype
        )

    def normal(self, shape, mean=0.0, stddev=1.0, dtype=tf.float32):
        return tf.random.stateless_normal(
            shape, self._next(), mean, stddev, dtype
        )


def _draw_from(random, layer, core):
    """Makes a layer, and those in it, draw from the given source."""
    layer._random_generator = random
    for name, value in list(vars(layer).items()):
        if isinstance(value, keras.layers.Layer):
            _draw_from(random, value, core)
        elif isinstance(value, (list, tuple)) and name == "layers":
            for inner in value:
                _draw_from(random, inner, core)
        elif isinstance(value, core.UniformFactorSampler):
            setattr(layer, name, _Uniform(random, value))
        elif isinstance(value, core.NormalFactorSampler):
            setattr(layer, name, _Normal(random, value))


class _Uniform:
    def __init__(self, random, sampler):
        self.random, self.sampler = random, sampler

    def __call__(self, shape=(), dtype=tf.float32):
        return self.random.uniform(
            shape, self.sampler.lower, self.sampler.upper, dtype
        )


class _Normal:
    def __init__(self, random, sampler):
        self.random, self.sampler = random, sampler

    def __call__(self, shape=(), dtype=tf.float32):
        return tf.clip_by_value(
            self.random.normal(
                shape, self.sampler.mean, self.sampler.stddev, dtype
            ),
            self.sampler.min_value,
            self.sampler.max_value,
        )
