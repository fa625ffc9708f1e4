"""Augmentation: functions of one image and a seed, by name."""

from collections.abc import Callable

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


AUGMENTATIONS = {"flip": flip}


def augmentation(augment: str | Callable | None) -> Callable | None:
    """Returns the function that a name stands for.

    Args:
        augment: A name, a function of `(image, seed)`, or None.
    """
    if augment is None or callable(augment):
        return augment
    if augment not in AUGMENTATIONS:
        raise ValueError(
            f"augment must be one of {sorted(AUGMENTATIONS)}, a function of "
            f"(image, seed), or None. Received: {augment!r}."
        )
    return AUGMENTATIONS[augment]
