"""Data and models that several tests use."""

import os
from pathlib import Path

import keras
import numpy as np
import pytest

import kmatch

IMAGE_SIZE = 32
NUM_SCENES = 96


def take(split, count, first_label=0):
    """The first images of a split with their captions, labelled anew."""
    kept = np.flatnonzero(split.caption_image < count)
    return kmatch.data.CaptionedImages(
        images=split.images[:count],
        captions=[split.captions[i] for i in kept],
        caption_image=split.caption_image[kept],
        labels=np.arange(count) + first_label,
    )


@pytest.fixture(scope="session")
def shapes():
    return kmatch.data.load("shapes")


@pytest.fixture(scope="session")
def scenes(shapes):
    """A small training split."""
    return take(shapes.train, NUM_SCENES)


@pytest.fixture(scope="session")
def unseen(shapes):
    """A small split of labels that training does not know."""
    return take(shapes.test, 64, first_label=NUM_SCENES)


@pytest.fixture(scope="session")
def tokenizer(scenes):
    return kmatch.text.Tokenizer.fit(scenes.captions, min_count=1)


@pytest.fixture(scope="session")
def small_tower():
    """Builds a small image tower; takes any `weights`, and ignores them."""

    def build(weights=None):
        return kmatch.towers.Tower(_small_network(), image_size=IMAGE_SIZE)

    return build


def _small_network():
    # A backbone of `keras.applications` would take most of the time of the
    # tests to trace; those are tested with the towers.
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Rescaling(1 / 127.5, offset=-1),
            layers.Conv2D(16, 5, strides=4, activation="relu"),
            layers.BatchNormalization(momentum=0.9),
            layers.Conv2D(32, 3, activation="relu"),
            layers.Flatten(),
        ],
        name="small_network",
    )


@pytest.fixture(scope="session")
def build(tokenizer, small_tower):
    """Builds a small model, the same each time; not compiled."""

    def build(seed=0, **kwargs):
        keras.utils.set_random_seed(seed)
        return kmatch.Matcher(
            image_tower=small_tower(),
            text_tower=kmatch.towers.bilstm(
                tokenizer, units=24, embedding_dim=16
            ),
            embedding_dim=32,
            batch_norm_momentum=0.9,
            **kwargs,
        )

    return build


@pytest.fixture(scope="session")
def losses():
    """Makes new losses, as the paper combines them."""

    def losses():
        return [
            kmatch.losses.CMPM(),
            kmatch.losses.CMPC(num_classes=NUM_SCENES),
        ]

    return losses


@pytest.fixture(scope="session")
def trained(build, losses, scenes):
    """A model trained long enough to tell its training scenes apart."""
    model = build()
    model.compile(keras.optimizers.Adam(5e-3), loss=losses())
    model.fit(
        model.batches(
            scenes, batch_size=32, captions_per_image=5, shuffle=True
        ),
        epochs=30,
        verbose=0,
    )
    return model


@pytest.fixture(scope="session")
def shared():
    """Folder of the real data and weights; tests that need it are skipped.

    The same code is covered on small data by other tests.
    """
    folder = Path(
        os.environ.get("KMATCH_SHARED", Path(__file__).parents[2] / "shared")
    )
    if not (folder / "weights").is_dir():
        pytest.skip("needs real weights; set KMATCH_SHARED to their folder")
    return folder
