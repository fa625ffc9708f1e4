"""Batches: each epoch's order, drawn in NumPy, and its `tf.data` pipeline."""

import logging
import secrets
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from kmatch.data.augmentation import augmentation, is_mirrored
from kmatch.data.captioned import CaptionedImages
from kmatch.data.images import image_name, image_reader
from kmatch.data.modalities import IMAGE, TEXT
from kmatch.data.sampling import Epoch, plan_epoch
from kmatch.text.tokenizer import PADDING, Tokenizer

_log = logging.getLogger("kmatch")


def batches(
    split: CaptionedImages,
    tokenizer: Tokenizer,
    image_size: int,
    batch_size: int,
    captions_per_image: int = 1,
    shuffle: bool = False,
    augment: str | Callable | None = None,
    seed: int | None = None,
    epoch: Callable[[], int] = lambda: 0,
    samples_per_label: int | None = None,
    features: Callable | None = None,
) -> tf.data.Dataset:
    """Returns a split's batches for `fit`; see `Matcher.batches`.

    Args:
        epoch: Called when the data set is iterated: the number of the epoch
            whose order to follow.
        features: Called with whether mirrored images are shown too: gives
            what to show in place of images, a `kmatch.matchers.Features`.
    """
    _check_counts(batch_size=batch_size, captions_per_image=captions_per_image)
    if samples_per_label is not None:
        _check_samples_per_label(samples_per_label, batch_size, shuffle)
    if seed is None:
        seed = secrets.randbits(31)
    if features is None:
        source = _images(split, image_size, augmentation(augment, image_size))
    else:
        source = _features(features, augment)
    with tf.device("CPU"):
        tokens = _tokenize(split.captions, tokenizer)
        image_labels = tf.constant(split.labels)
        text_labels = tf.constant(split.text_labels)

    def plan(number):
        return plan_epoch(
            split.caption_image, tokens.row_lengths().numpy(), batch_size,
            captions_per_image, shuffle, seed, int(number), split.labels,
            samples_per_label,
        )  # fmt: skip

    def load(place, number, group):
        shown = source.read(group.image, group.seed)
        return place, number, shown, group.image, group.captions

    def assemble(shown, image_index, captions):
        captions = tf.boolean_mask(captions, captions >= 0)
        padded = tf.gather(tokens, captions).to_tensor(PADDING)
        return (
            {
                source.name: source.collect(shown, image_index),
                TEXT.input: padded,
            },
            {
                IMAGE.label: tf.gather(image_labels, image_index),
                TEXT.label: tf.gather(text_labels, captions),
            },
        )

    num_groups = len(plan(0).image)
    return (
        _groups(plan, epoch, source.begin, captions_per_image)
        .map(load, num_parallel_calls=tf.data.AUTOTUNE)
        .apply(_replace_unreadable(split, plan, num_groups))
        .batch(batch_size)
        .map(assemble, num_parallel_calls=tf.data.AUTOTUNE)
        .apply(
            tf.data.experimental.assert_cardinality(
                -(-num_groups // batch_size)
            )
        )
        .prefetch(tf.data.AUTOTUNE)
    )


class _Source(NamedTuple):
    """What a batch shows of its images, and how it gets there."""

    name: str
    read: Callable  # of one image's index and seed
    collect: Callable  # of a batch of what was read, and of indices
    begin: Callable = lambda: None  # called when an epoch begins


def _images(split, image_size, augment):
    read = image_reader(split.images, image_size)

    def read_and_augment(index, seed):
        image = read(index)
        return image if augment is None else augment(image, seed)

    return _Source(
        IMAGE.input, read_and_augment, lambda images, indices: images
    )


def _features(features, augment):
    if augment not in (None, "flip"):
        raise ValueError(
            "Features of images are computed once, and augment would change "
            f"the images. Received: augment={augment!r}. Pass None or "
            "'flip', or leave model.cache_features out."
        )
    features = features(augment == "flip")
    with tf.device("CPU"):
        readable = tf.constant(features.readable)

    def read(index, seed):
        # Fails as an image that cannot be read does.
        check = tf.debugging.Assert(readable[index], ["unreadable"])
        with tf.control_dependencies([check]):
            if augment is None:
                return tf.constant(False)
            return is_mirrored(seed)

    def collect(mirrored, indices):
        # A batch at a time: a call into Python costs more than a row.
        rows = tf.numpy_function(
            features.gather, [indices, mirrored], tf.float32
        )
        return tf.ensure_shape(rows, [None, features.dim])

    return _Source(IMAGE.features, read, collect, features.check)


def _check_counts(**counts):
    for name, count in counts.items():
        if not isinstance(count, (int, np.integer)) or count < 1:
            raise ValueError(
                f"{name} must be a whole number from 1 on. Received: {count}."
            )


def _check_samples_per_label(samples, batch_size, shuffle):
    _check_counts(samples_per_label=samples)
    if batch_size % samples:
        raise ValueError(
            f"A batch of {batch_size} does not divide into samples_per_label="
            f"{samples}. Pass a batch_size that is a multiple of it."
        )
    if not shuffle:
        raise ValueError("samples_per_label needs shuffle=True.")


def _tokenize(captions, tokenizer):
    """Returns all captions' ids as one ragged tensor, cut to length."""
    parts = list(
        tf.data.Dataset.from_tensor_slices(captions)
        .batch(1024)
        .map(tokenizer.ragged, num_parallel_calls=tf.data.AUTOTUNE)
    )
    tokens = tf.concat(parts, axis=0)
    cut = int(
        tf.math.count_nonzero(tokens.row_lengths() > tokenizer.max_length)
    )
    if cut:
        _log.warning(
            "%d of %d captions are longer than max_length=%d words and were "
            "cut.", cut, len(captions), tokenizer.max_length,
        )  # fmt: skip
    return tokens[:, : tokenizer.max_length]


def _groups(plan, epoch, begin, captions_per_image):
    """Yields the groups of the epoch that `epoch()` names, twice over.

    The second time they stand in for groups whose image cannot be read.
    """

    def draw():
        begin()
        number = np.int64(epoch())
        planned = plan(number)
        return (number, *(np.concatenate([x, x]) for x in planned))

    def start(_):
        number, image, captions, seed = tf.numpy_function(
            draw, [], [tf.int64] * 4, stateful=True
        )
        planned = Epoch(
            tf.ensure_shape(image, [None]),
            tf.ensure_shape(captions, [None, captions_per_image]),
            tf.ensure_shape(seed, [None, 2]),
        )
        groups = tf.data.Dataset.from_tensor_slices(planned)
        return groups.enumerate().map(
            lambda place, group: (place, number, Epoch(*group))
        )

    return tf.data.Dataset.range(1).flat_map(start)


def _replace_unreadable(split, plan, num_groups):
    """Lets later groups take the place of those that failed, and says so."""
    unreadable = set()

    def report(number, begin, end):
        images = np.concatenate([plan(number).image] * 2)[begin:end]
        new = set(images.tolist()) - unreadable
        unreadable.update(new)
        if new:
            names = ", ".join(image_name(split.images, i) for i in new)
            _log.warning(
                "Could not read %s. Other images and their captions take the "
                "place of %d unreadable of %d images.",
                names, len(unreadable), len(split.images),
            )  # fmt: skip
        return np.int64(len(unreadable))

    def check(expected, group):
        place, number, *rest = group
        tf.cond(
            place > expected,
            lambda: tf.numpy_function(
                report, [number, expected, place], tf.int64
            ),
            lambda: tf.constant(0, tf.int64),
        )
        return place + 1, tuple(rest)

    def fail(_):
        raise ValueError(
            "More than half of the images cannot be read. Are they JPEG, "
            "PNG, GIF, BMP or WebP files?"
        )

    def transform(groups):
        readable = groups.ignore_errors().scan(np.int64(0), check)
        spec = readable.element_spec
        exhausted = tf.data.Dataset.range(1).map(
            lambda i: tf.nest.map_structure(
                lambda s, v: tf.ensure_shape(v, s.shape),
                spec,
                tuple(tf.numpy_function(fail, [i], [s.dtype for s in spec])),
            )
        )
        return readable.concatenate(exhausted).take(num_groups)

    return transform
