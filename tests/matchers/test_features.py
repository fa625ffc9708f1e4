import os
import subprocess
import sys
import time

import keras
import numpy as np
import pytest
import tensorflow as tf

import kmatch
from kmatch.matchers import features as features_module
from kmatch.matchers.features import FeatureCache, tower_key
from tests.conftest import IMAGE_SIZE, take


@pytest.fixture
def files(scenes, tmp_path):
    """Twenty scenes as files, one of which is no image."""
    paths = []
    for i, image in enumerate(scenes.images[:20]):
        paths.append(tmp_path / f"{i:02}.png")
        paths[-1].write_bytes(tf.io.encode_png(image).numpy())
    paths[7].write_bytes(b"not an image")
    split = take(scenes, 20)
    return kmatch.data.CaptionedImages(
        paths, split.captions, split.caption_image
    )


@pytest.fixture
def computed(monkeypatch):
    """Counts the images whose features are computed."""
    count = [0]
    readable_images = features_module.readable_images

    def counting(*arguments):
        for index, batch in readable_images(*arguments):
            count[0] += len(index)
            yield index, batch

    monkeypatch.setattr(features_module, "readable_images", counting)
    return count


@pytest.fixture
def frozen(build):
    return build(freeze_image_tower=True, standardize_features=True)


def shown(model, dataset):
    """All that the model sees of a data set's images and texts."""
    seen = []
    for inputs, labels in dataset:
        if "image" in inputs:
            features = model.image_tower(inputs["image"], training=False)
        else:
            features = inputs["image_features"]
        seen.append([features, inputs["tokens"], *labels.values()])
    return seen


@pytest.mark.parametrize("augment", [None, "flip"])
def test_batches_show_the_same_as_without_the_cache(
    files, frozen, tmp_path, augment, computed, caplog
):
    def epoch():
        return shown(
            frozen,
            frozen.batches(files, 8, 2, shuffle=True, augment=augment, seed=3),
        )

    expected = epoch()
    frozen.cache_features(tmp_path / "cache")
    for again in range(2):
        caplog.clear()
        for ours, theirs in zip(epoch(), expected, strict=True):
            np.testing.assert_allclose(ours[0], theirs[0], atol=1e-5)
            for own, their in zip(ours[1:], theirs[1:]):
                np.testing.assert_array_equal(own, their)
        assert "07.png" in caplog.text and "1 unreadable of 20" in caplog.text
        assert computed[0] == (19 if augment is None else 38), again


def test_evaluation_is_the_same_and_training_finds_its_features(
    files, frozen, tmp_path, computed, caplog
):
    expected = kmatch.evaluate(frozen, files)
    caplog.clear()
    frozen.cache_features(tmp_path / "cache")
    report = kmatch.evaluate(frozen, files)
    assert dict(report) == pytest.approx(dict(expected))
    assert "1 of 20 images" in caplog.text and "07.png" in caplog.text
    frozen.compile(loss=kmatch.losses.CMPM())
    frozen.fit(
        frozen.batches(files, 8, shuffle=True),
        verbose=0,
        callbacks=[kmatch.callbacks.RecallAtK(files)],
    )
    kmatch.evaluate(frozen, files)
    assert computed[0] == 19


def test_training_gives_the_same_weights(scenes, build, tmp_path):
    weights = []
    for cached in (False, True):
        model = build(freeze_image_tower=True)
        if cached:
            model.cache_features(tmp_path)
        model.compile("sgd", loss=kmatch.losses.CMPM())
        dataset = model.batches(
            scenes, 32, 5, shuffle=True, augment="flip", seed=0
        )
        model.fit(dataset, epochs=2, verbose=0)
        weights.append(model.get_weights())
    for ours, theirs in zip(*weights):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_encode_images_keeps_nothing(files, frozen, tmp_path):
    frozen.cache_features(tmp_path / "cache")
    frozen.encode_images(files.images[:3])
    assert not (tmp_path / "cache").exists()


def test_other_weights_and_changed_images_are_computed_anew(
    files, frozen, tmp_path, computed
):
    frozen.cache_features(tmp_path / "cache")
    kmatch.evaluate(frozen, files)
    path = files.images[3]
    os.utime(path, ns=(0, time.time_ns()))
    kmatch.evaluate(frozen, files)
    assert computed[0] == 19 + 1
    kernel = frozen.image_tower.weights[0]
    kernel.assign(kernel * 1.01)
    kmatch.evaluate(frozen, files)
    assert computed[0] == 19 + 1 + 19


def test_a_tower_that_is_trained_is_not_cached(scenes, build, tmp_path):
    model = build()
    model.cache_features(tmp_path / "cache")
    inputs, _ = next(iter(model.batches(scenes, 8, augment="flip")))
    assert "image" in inputs
    kmatch.evaluate(model, scenes)
    assert not (tmp_path / "cache").exists()


def test_batches_of_a_tower_that_has_changed_are_refused(
    scenes, frozen, tmp_path
):
    frozen.cache_features(tmp_path)
    dataset = frozen.batches(scenes, 8)
    next(iter(dataset))
    frozen.freeze_image_tower = False
    with pytest.raises(tf.errors.InvalidArgumentError, match="batches again"):
        next(iter(dataset))


def test_other_augmentation_is_an_error(scenes, frozen, tmp_path):
    frozen.cache_features(tmp_path / "cache")
    for augment in ("rotate", lambda image, seed: image):
        with pytest.raises(ValueError, match="None or 'flip'"):
            frozen.batches(scenes, 8, augment=augment)
    assert not (tmp_path / "cache").exists()


def test_a_block_is_kept_as_soon_as_it_is_whole(
    scenes, frozen, tmp_path, monkeypatch, computed
):
    monkeypatch.setattr(features_module, "_BLOCK", 32)
    monkeypatch.setattr(features_module, "_BATCH", 16)
    cache = FeatureCache(tmp_path, frozen.image_tower)
    compute, calls = cache._compute, []

    def killed(images):
        calls.append(len(images))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return compute(images)

    cache._compute = killed
    with pytest.raises(KeyboardInterrupt):
        cache.features(scenes.images)
    computed[0] = 0
    again = FeatureCache(tmp_path, frozen.image_tower).features(scenes.images)
    assert computed[0] == len(scenes.images) - 32
    expected = frozen.image_tower(
        tf.image.resize(scenes.images, [IMAGE_SIZE] * 2)
    )
    np.testing.assert_allclose(
        again.gather(np.arange(len(scenes.images))), expected, atol=1e-5
    )


def test_a_damaged_file_is_computed_again(scenes, frozen, tmp_path, caplog):
    cache = FeatureCache(tmp_path, frozen.image_tower)
    cache.features(scenes.images)
    (path,) = tmp_path.glob("*/*.features")
    whole = path.read_bytes()
    row = len(whole) // len(scenes.images)
    for size in (0, 3 * row, len(whole) - 5):
        caplog.clear()
        path.write_bytes(whole[:size])
        FeatureCache(tmp_path, frozen.image_tower).features(scenes.images)
        assert "is damaged" in caplog.text
        assert path.read_bytes() == whole


def test_the_key_depends_on_the_tower_and_not_on_names():
    def tower(strides):
        keras.utils.set_random_seed(0)
        images = keras.Input([8, 8, 3])
        x = keras.layers.Conv2D(4, 3, strides)(images)
        x = keras.layers.GlobalAveragePooling2D()(x)
        return kmatch.towers.Tower(keras.Model(images, x), image_size=8)

    first, again, other = tower(1), tower(1), tower(2)
    assert first.model.name != again.model.name
    assert tower_key(first) == tower_key(again) != tower_key(other)
    again.weights[0].assign(again.weights[0] + 1)
    assert tower_key(first) != tower_key(again)


def test_standardised_features_are_saved(frozen, scenes, tmp_path):
    frozen.compile("sgd", loss=kmatch.losses.CMPM())
    frozen.fit(frozen.batches(scenes, 32, 5, shuffle=True), verbose=0)
    mean = frozen.image_embedding.layers[0].moving_mean.numpy()
    assert np.abs(mean).max() > 0
    frozen.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(
        loaded.encode_images(scenes.images), frozen.encode_images(scenes.images)
    )


@pytest.mark.slow
def test_a_new_process_computes_nothing(files, tmp_path):
    script = """
import sys
import keras, kmatch
from kmatch.matchers import features

keras.utils.set_random_seed(0)
compute = features.readable_images
def counting(*arguments):
    print("computing", len(arguments[3]))
    return compute(*arguments)
features.readable_images = counting
cache, *paths = sys.argv[1:]
split = kmatch.data.from_pairs(paths, ["a caption"] * len(paths))
model = kmatch.Matcher(
    kmatch.towers.mobilenet(32, 0.25, weights=None),
    kmatch.towers.bilstm(kmatch.text.Tokenizer(["a"]), units=8),
    freeze_image_tower=True,
)
model.cache_features(cache)
print(kmatch.evaluate(model, split)["rsum"])
"""
    paths = [path for path in files.images if "07" not in path]
    command = [sys.executable, "-c", script, str(tmp_path / "cache"), *paths]
    outputs = [
        subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for _ in range(2)
    ]
    assert "computing 19" in outputs[0]
    assert outputs[0][-1] == outputs[1][-1]
    assert not [line for line in outputs[1] if "computing" in line]
