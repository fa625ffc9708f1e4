"""Batches: each epoch's order, drawn in NumPy, and its `tf.data` pipeline."""

import logging
import secrets
from collections.abc import Callable
from functools import lru_cache
from itertools import cycle
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from kmatch.data.augmentation import augmentation, is_mirrored
from kmatch.data.captioned import CaptionedImages
from kmatch.data.images import AHEAD, image_name, image_reader, untuned
from kmatch.data.modalities import IMAGE, TEXT
from kmatch.data.sampling import Epoch, plan_epoch
from kmatch.text.tokenizer import PADDING, Tokenizer, as_utf8

_log = logging.getLogger("kmatch")

# In place of an epoch's number, where no batch tells it.
_LATEST = -1


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

    @lru_cache(maxsize=2)
    def plan(number):
        return plan_epoch(
            split.caption_image, tokens.row_lengths().numpy(), batch_size,
            captions_per_image, shuffle, seed, number, split.labels,
            samples_per_label,
        )  # fmt: skip

    def draw():
        nonlocal latest
        source.begin()
        latest = int(epoch())
        return np.int64(latest), *plan(latest)

    def planned(number):
        return plan(latest if number == _LATEST else int(number))

    def load(place, group):
        shown = source.read(group.image, group.seed)
        return place, shown, group.image, group.captions

    latest = 0
    num_groups = len(plan(latest).image)
    again = _load_again(split.images, source, batch_size, planned)

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

    return (
        _groups(draw, num_groups, captions_per_image)
        .map(load, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(batch_size)
        .ignore_errors()
        .apply(_fill_gaps(num_groups, batch_size, again))
        .map(assemble, num_parallel_calls=tf.data.AUTOTUNE)
        .apply(
            tf.data.experimental.assert_cardinality(
                -(-num_groups // batch_size)
            )
        )
        .prefetch(AHEAD)
        .with_options(_whole_batches())
    )


class _Source(NamedTuple):
    """What a batch shows of its images, and how it gets there."""

    name: str
    read: Callable  # of one image's index and seed
    check: Callable  # of an index: fails where the image cannot be read
    collect: Callable  # of a batch of what was read, and of indices
    begin: Callable = lambda: None  # called when an epoch begins


def _images(split, image_size, augment):
    read = image_reader(split.images, image_size)

    def read_and_augment(index, seed):
        image = read(index)
        if augment is None:
            return image
        return tf.ensure_shape(augment(image, seed), image.shape)

    return _Source(
        IMAGE.input, read_and_augment, read, lambda images, indices: images
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

    def check(index):
        # Fails as an image that cannot be read does.
        found = tf.debugging.Assert(readable[index], ["unreadable"])
        with tf.control_dependencies([found]):
            return tf.identity(index)

    def read(index, seed):
        with tf.control_dependencies([check(index)]):
            if augment is None:
                return tf.constant(False)
            return is_mirrored(seed)

    def collect(mirrored, indices):
        # A batch at a time: a call into Python costs more than a row.
        rows = tf.numpy_function(
            features.gather, [indices, mirrored], tf.float32
        )
        return tf.ensure_shape(rows, [None, features.dim])

    return _Source(IMAGE.features, read, check, collect, features.check)


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
        tf.data.Dataset.from_tensor_slices(as_utf8(captions))
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


def _groups(draw, num_groups, captions_per_image):
    """Yields the groups of an epoch, drawn when iterated, with their places.

    A place is the epoch's number and the group's place in it.
    """

    def start(_):
        number, image, captions, seed = tf.numpy_function(
            draw, [], [tf.int64] * 4, stateful=True
        )
        places = tf.range(num_groups, dtype=tf.int64)
        return tf.data.Dataset.from_tensor_slices(
            (
                tf.stack([tf.fill([num_groups], number), places], axis=1),
                Epoch(
                    tf.ensure_shape(image, [num_groups]),
                    tf.ensure_shape(captions, [num_groups, captions_per_image]),
                    tf.ensure_shape(seed, [num_groups, 2]),
                ),
            )
        )

    return tf.data.Dataset.range(1).flat_map(start)


def _whole_batches():
    """Has an image that cannot be read fail its whole batch and no other.

    That is how loading and batching in one work, which is quicker than one
    after the other: each image is copied to its batch while still at hand.
    """
    options = untuned()
    options.experimental_optimization.map_and_batch_fusion = True
    return options


def _fill_gaps(num_groups, batch_size, load_again):
    """Puts batches back that failed; `load_again` is given their places."""

    def transform(loaded):
        places, *spec = loaded.element_spec
        end = (
            tf.constant([[_LATEST, num_groups]], places.dtype),
            *(tf.zeros([1, *s.shape[1:]], s.dtype) for s in spec),
        )

        def find(state, batch):
            earlier, expected = tf.unstack(state)
            number, first = tf.unstack(batch[0][0])
            number = tf.where(number == _LATEST, earlier, number)
            whole = (first % batch_size == 0) | (first == num_groups)
            check = tf.debugging.Assert(
                whole,
                ["Some images of a batch are lost: leave the option "
                 "map_and_batch_fusion as model.batches sets it."],
            )  # fmt: skip
            with tf.control_dependencies([check]):
                state = tf.stack([number, first + batch_size])
            return state, (number, expected, first, batch[1:])

        def fill(number, expected, first, batch):
            return (
                tf.data.Dataset.range(expected, first, batch_size)
                .map(lambda place: load_again(number, place, spec))
                .concatenate(tf.data.Dataset.from_tensors(batch))
            )

        return (
            loaded.concatenate(tf.data.Dataset.from_tensors(end))
            .scan(tf.constant([_LATEST, 0], places.dtype), find)
            .flat_map(fill)
            .take(-(-num_groups // batch_size))
        )

    return transform


def _load_again(images, source, batch_size, planned):
    """Loads a batch image by image; following ones stand in for unreadable."""
    unreadable = set()
    index, seed = tf.TensorSpec([], tf.int64), tf.TensorSpec([2], tf.int64)
    read = tf.function(source.read, input_signature=[index, seed])
    check = tf.function(source.check, input_signature=[index])

    def load(number, first):
        image, captions, seed = planned(number)
        places, shown = [], []
        size = min(batch_size, len(image) - first)
        following = cycle(np.roll(np.arange(len(image)), -first))
        while len(places) < size:
            place = next(following)
            try:
                with tf.device("CPU"):
                    shown.append(read(image[place], seed[place]).numpy())
                places.append(place)
            except tf.errors.OpError:
                if is_readable(image[place]):
                    raise  # it is the augmentation that failed
                report(int(image[place]))
        return np.stack(shown), image[places], captions[places]

    def is_readable(index):
        try:
            with tf.device("CPU"):
                check(index)
        except tf.errors.OpError:
            return False
        return True

    def report(index):
        known = index in unreadable
        unreadable.add(index)
        if 2 * len(unreadable) > len(images):
            raise ValueError(
                "More than half of the images cannot be read. Are they JPEG, "
                "PNG, GIF, BMP or WebP files?"
            )
        if not known:
            _log.warning(
                "Could not read %s. Other images and their captions take the "
                "place of %d unreadable of %d images.",
                image_name(images, index), len(unreadable), len(images),
            )  # fmt: skip

    def batch(number, first, spec):
        loaded = tf.numpy_function(
            load, [number, first], [s.dtype for s in spec]
        )
        return tuple(
            tf.ensure_shape(values, s.shape) for values, s in zip(loaded, spec)
        )

    return batch
