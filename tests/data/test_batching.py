import logging
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

import kmatch
from kmatch.data.batching import batches
from kmatch.data.sampling import plan_epoch


@pytest.fixture(scope="module")
def uneven():
    """40 images with one to six captions of uneven lengths."""
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 7, size=40)
    captions = [
        f"image {image} caption {number} " + "more " * rng.integers(0, 9)
        for image, count in enumerate(counts)
        for number in range(count)
    ]
    return kmatch.data.CaptionedImages(
        images=rng.integers(0, 256, size=[40, 12, 10, 3]).astype("uint8"),
        captions=captions,
        caption_image=np.repeat(np.arange(40), counts),
        labels=np.arange(40) // 2,
    )


@pytest.fixture(scope="module")
def words(uneven):
    return kmatch.text.Tokenizer.fit(uneven.captions, min_count=1)


def decoded(tokens, tokenizer):
    vocabulary = tokenizer.vocabulary
    return [" ".join(vocabulary[i] for i in row if i) for row in tokens.numpy()]


@pytest.mark.parametrize("captions_per_image", [1, 2, 5, 9])
@pytest.mark.parametrize("shuffle", [False, True])
def test_an_epoch_shows_every_pair_exactly_once(
    uneven, words, captions_per_image, shuffle
):
    dataset = batches(uneven, words, 10, 7, captions_per_image, shuffle, seed=1)
    image_of = {
        text.strip(): uneven.images[image]
        for text, image in zip(uneven.captions, uneven.caption_image)
    }
    label_of = {
        text.strip(): label
        for text, label in zip(uneven.captions, uneven.text_labels)
    }
    seen = Counter()
    num_batches = 0
    for x, y in dataset:
        num_batches += 1
        images = x["image"].numpy()
        assert images.dtype == np.float32
        group = -1
        for text, label in zip(decoded(x["tokens"], words), y["text_label"]):
            seen[text] += 1
            assert label == label_of[text]
            # A group's captions follow one another, as do the images.
            source = image_of[text]
            expected = tf.image.resize(source, [10, 10])
            while group < 0 or not np.allclose(images[group], expected):
                group += 1
            assert y["image_label"][group] == label
        assert len(images) == len(y["image_label"])
    assert seen == Counter(image_of.keys())
    assert num_batches == len(dataset)


def test_groups_run_each_image_once(uneven, words):
    dataset = batches(uneven, words, 10, 40, captions_per_image=6)
    ((x, y),) = dataset
    assert len(x["image"]) == 40
    assert len(x["tokens"]) == len(uneven.captions)


def order(dataset):
    return [row for _, y in dataset for row in y["text_label"].numpy()]


def pixels(dataset):
    return np.concatenate([x["image"] for x, _ in dataset])


def test_order_and_augmentation_depend_on_seed_and_epoch_alone(uneven, words):
    epoch = 0

    def make(seed):
        return batches(
            uneven, words, 10, 7, 2, True, "flip", seed, lambda: epoch
        )

    first, again, other = make(1), make(1), make(2)
    assert order(first) == order(first) == order(again)
    np.testing.assert_array_equal(pixels(first), pixels(again))
    assert order(first) != order(other)
    before = order(first)
    epoch = 1
    assert order(first) == order(again) != before


def test_flip_mirrors_about_half_of_the_images(uneven, words):
    plain = pixels(batches(uneven, words, 10, 64))
    mixed = pixels(batches(uneven, words, 10, 64, augment="flip", seed=0))
    same = np.all(plain == mixed, axis=(1, 2, 3))
    mirrored = np.all(plain[:, :, ::-1] == mixed, axis=(1, 2, 3))
    assert np.all(same | mirrored)
    assert 0.3 < mirrored.mean() < 0.7


def test_augment_takes_a_function_and_gives_it_seeds(uneven, words):
    def negative(image, seed):
        tf.debugging.assert_shapes([(seed, [2])])
        return 255 - image

    plain = pixels(batches(uneven, words, 10, 64))
    negatives = pixels(batches(uneven, words, 10, 64, augment=negative))
    np.testing.assert_allclose(negatives, 255 - plain)


def padded(epoch, lengths, batch_size):
    """Tokens of an epoch, padding included, and padding alone."""
    longest = [
        np.where(captions >= 0, lengths[captions], 0)
        for captions in epoch.captions
    ]
    total = padding = 0
    for start in range(0, len(longest), batch_size):
        batch = np.concatenate(longest[start : start + batch_size])
        batch = batch[batch > 0]
        total += len(batch) * batch.max()
        padding += len(batch) * batch.max() - batch.sum()
    return total, padding


@pytest.mark.parametrize("captions_per_image", [1, 3])
def test_bucketing_pads_less_and_keeps_batches_full(captions_per_image):
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.normal(11, 4, size=6400).astype(int), 2, 40)
    images = np.repeat(np.arange(1600), 4)

    def plan(lengths):
        return plan_epoch(
            images, lengths, 32, captions_per_image, shuffle=True, seed=0
        )

    bucketed, even = plan(lengths), plan(np.ones(6400))
    assert sorted(bucketed.captions[bucketed.captions >= 0]) == list(
        range(6400)
    )
    total, padding = padded(bucketed, lengths, 32)
    shuffled_total, shuffled_padding = padded(even, lengths, 32)
    assert total < shuffled_total * 0.75
    assert padding < shuffled_padding * (
        1 / 3 if captions_per_image == 1 else 0.7
    )


def test_bucketing_on_real_captions(shared):
    train = kmatch.data.load("flickr8k", root=shared / "flickr8k").train
    lengths = np.array([len(caption.split()) for caption in train.captions])
    images = train.caption_image

    def plan(lengths):
        return plan_epoch(images, lengths, 64, shuffle=True, seed=0)

    total, padding = padded(plan(lengths), lengths, 64)
    ones = np.ones(len(lengths))
    shuffled_total, shuffled_padding = padded(plan(ones), lengths, 64)
    assert total < shuffled_total * 2 / 3
    assert padding < shuffled_padding / 3


def test_sampler_shows_so_many_samples_of_so_many_labels():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(50), rng.integers(1, 9, size=50))
    images = np.repeat(np.arange(len(labels)), 2)
    epoch = plan_epoch(
        images, np.ones(len(images)), 12, shuffle=True, seed=1,
        labels=labels, samples_per_label=3,
    )  # fmt: skip
    assert sorted(epoch.captions[:, 0]) == list(range(len(images)))
    whole = len(images) // 12 * 12
    exact = [
        sorted(Counter(batch).values()) == [3, 3, 3, 3]
        for batch in labels[epoch.image][:whole].reshape(-1, 12)
    ]
    hands = [count // 3 for count in Counter(labels[images]).values()]
    # The first hands of all labels make batches, then the second ones.
    expected = sum(
        sum(hand > turn for hand in hands) // 4 for turn in range(max(hands))
    )
    assert sum(exact) >= expected > 10
    again = plan_epoch(
        images, np.ones(len(images)), 12, shuffle=True, seed=1, epoch=1,
        labels=labels, samples_per_label=3,
    )  # fmt: skip
    assert not np.array_equal(epoch.captions, again.captions)


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_sampler_loses_nothing_of_one_label_or_many(count):
    for labels in (np.zeros(count, int), np.arange(count)):
        epoch = plan_epoch(
            np.arange(count), np.ones(count), 4, shuffle=True,
            labels=labels, samples_per_label=2,
        )  # fmt: skip
        assert sorted(epoch.image) == list(range(count))


def test_sampler_in_batches(uneven, words):
    dataset = batches(
        uneven, words, 10, 8, shuffle=True, seed=0, samples_per_label=2
    )
    seen = Counter(order(dataset))
    assert seen == Counter(uneven.text_labels.tolist())
    counts = [Counter(y["image_label"].numpy()).values() for _, y in dataset]
    assert np.mean([set(count) == {2} for count in counts]) > 0.7


def test_long_captions_are_cut_and_counted(uneven, caplog):
    tokenizer = kmatch.text.Tokenizer(["image"], max_length=4)
    dataset = batches(uneven, tokenizer, 10, 8)
    longer = sum(len(caption.split()) > 4 for caption in uneven.captions)
    assert f"{longer} of {len(uneven.captions)} captions" in caplog.text
    assert max(x["tokens"].shape[1] for x, _ in dataset) == 4


@pytest.fixture
def files(tmp_path):
    """Twenty image files with two captions each; two are no images."""
    rng = np.random.default_rng(0)
    paths = []
    for i in range(20):
        path = tmp_path / f"{i:02}.png"
        pixels = rng.integers(0, 256, size=[8, 8, 3]).astype("uint8")
        path.write_bytes(tf.io.encode_png(pixels).numpy())
        paths += [path, path]
    (tmp_path / "05.png").write_bytes(b"not an image")
    (tmp_path / "19.png").write_bytes(b"")
    captions = [f"caption {i}" for i in range(40)]
    return kmatch.data.from_pairs(paths, captions)


@pytest.mark.parametrize("shuffle", [False, True])
def test_unreadable_images_are_replaced_named_once_and_counted(
    files, words, caplog, shuffle
):
    dataset = batches(files, words, 8, 6, shuffle=shuffle, seed=0)
    for _ in range(2):
        seen = Counter(order(dataset))
        assert seen.total() == 40
        assert not {5, 19} & set(seen)
        assert set(seen) == set(range(20)) - {5, 19}
    assert caplog.text.count("05.png") == caplog.text.count("19.png") == 1
    assert "2 unreadable of 20" in caplog.text


@pytest.mark.parametrize("batch_size", [1, 7, 40, 64])
def test_only_unreadable_images_are_missing_from_an_epoch(
    files, words, batch_size
):
    dataset = batches(files, words, 8, batch_size, shuffle=True, seed=0)
    sizes = [len(x["image"]) for x, _ in dataset]
    assert len(sizes) == len(dataset) and sum(sizes) == 40
    seen = Counter(order(dataset))
    assert set(seen) == set(range(20)) - {5, 19}
    assert min(seen.values()) == 2
    assert order(dataset) == order(dataset)


def test_no_image_is_lost_where_loading_and_batching_are_kept_apart(
    files, words
):
    options = tf.data.Options()
    options.experimental_optimization.map_and_batch_fusion = False
    shown = batches(files, words, 4, batch_size=7).with_options(options)
    with pytest.raises(tf.errors.InvalidArgumentError, match="are lost"):
        list(shown)


def test_too_many_unreadable_images_are_an_error(files, words):
    for path in files.images:
        with open(path, "wb") as file:
            file.write(b"not an image")
    dataset = batches(files, words, 8, 6)
    for _ in range(4):
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="More than half"
        ):
            list(dataset)


def test_unreadable_images_are_replaced_from_their_own_epoch(files, words):
    numbers = iter([0, 1])
    dataset = batches(
        files, words, 8, 6, shuffle=True, seed=0, epoch=lambda: next(numbers)
    )
    first, second = iter(dataset), iter(dataset)
    next(first), next(second)  # the other epoch is drawn before this one ends
    alone = batches(files, words, 8, 6, shuffle=True, seed=0)
    assert order(first) == order(alone)[6:]


def test_a_failing_augmentation_is_not_taken_for_a_broken_image(files, words):
    def augment(image, seed):
        with tf.control_dependencies([tf.debugging.Assert(False, ["own bug"])]):
            return tf.identity(image)

    dataset = batches(files, words, 8, 6, augment=augment)
    with pytest.raises(tf.errors.OpError, match="own bug"):
        list(dataset)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"batch_size": 0}, "batch_size must be"),
        ({"batch_size": 2.5}, "batch_size must be"),
        ({"batch_size": 2, "captions_per_image": 0}, "captions_per_image"),
        ({"batch_size": 2, "augment": "rotate"}, "one of flip, randaugment"),
        ({"batch_size": 5, "samples_per_label": 2}, "does not divide"),
        ({"batch_size": 4, "samples_per_label": 2}, "needs shuffle=True"),
        ({"batch_size": 4, "samples_per_label": 0}, "whole number"),
    ],
)
def test_bad_input(uneven, words, arguments, message):
    with pytest.raises(ValueError, match=message):
        batches(uneven, words, 8, **arguments)


def test_kmatch_logs_under_its_name(caplog, uneven):
    batches(uneven, kmatch.text.Tokenizer(["a"], max_length=1), 8, 8)
    assert {record.name for record in caplog.records} == {"kmatch"}
    assert caplog.records[0].levelno == logging.WARNING
