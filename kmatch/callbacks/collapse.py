"""A watch for training that has stopped to learn anything."""

import logging
from numbers import Integral

import keras
import numpy as np
import tensorflow as tf

from kmatch.data.captioned import CaptionedImages, check_split
from kmatch.data.modalities import IMAGE, TEXT
from kmatch.retrieval.evaluation import encode_split
from kmatch.retrieval.measures import mean_similarity

_log = logging.getLogger("kmatch")

# What is nearer than this to a collapse, as a share, counts as collapsed...
_NEAR = 0.01
# ... unless it moves away by this much from look to look.
_GROWTH, _NOISE = 1.1, 1e-4

_HELP = (
    "What usually helps: a lower learning rate; the weights of a pretrained "
    "image tower; batch normalisation in the joint embedding; a larger batch; "
    "and labels that say which captions belong to which image."
)


class CollapseWatch(keras.callbacks.Callback):
    """Warns once when a model collapses, and says what usually helps.

    After each epoch some pairs of a split are embedded. It warns when the
    embeddings of a modality are alike, or when a loss sits at the value it
    has if embeddings say nothing (which is that of embeddings of zeros: for
    CMPM with 64 pairs about 28), several times in a row without moving away.
    A new model may look like that, and is given some steps.

    Args:
        split: Usually the training split, whose labels losses know.
        num_pairs: How many images to look at, each with one caption.
        patience: How many epochs in a row have to look bad.
        warmup: Steps before the first look.

    >>> import kmatch
    >>> data = kmatch.data.load("shapes")
    >>> callback = kmatch.callbacks.CollapseWatch(data.train)
    """

    def __init__(
        self,
        split: CaptionedImages,
        num_pairs: int = 64,
        patience: int = 3,
        warmup: int = 200,
    ):
        super().__init__()
        for name, number in ("num_pairs", num_pairs), ("patience", patience):
            if not isinstance(number, Integral) or number < 2:
                raise ValueError(
                    f"{name} must be a whole number from 2. "
                    f"Received: {number!r}."
                )
        check_split(split)
        if len(split.images) < 2:
            raise ValueError(
                "Whether embeddings are alike shows in two images or more. "
                f"Received: {split}."
            )
        self.patience = patience
        self.warmup = warmup
        self.warned = False
        self._sample = _some_pairs(split, num_pairs)
        self._looks = {}
        self._steps = 0

    def on_train_batch_end(self, batch, logs=None):
        self._steps += 1

    def on_epoch_end(self, epoch, logs=None):
        if self.warned or self._steps < self.warmup:
            return
        images, texts, kept = encode_split(
            self.model, self._sample, progress=False, normalized=False
        )
        for modality, embeddings in (IMAGE, images), (TEXT, texts):
            if not np.isfinite(embeddings).all():
                self._warn(
                    f"The {modality.name} embeddings hold NaN or infinite "
                    "values: the training has diverged."
                )
                return
            spread = 1 - mean_similarity(embeddings)
            if self._stays(modality.name, spread):
                self._warn(
                    f"The {modality.name} embeddings have become alike: their "
                    f"mean cosine similarity is {1 - spread:.4f}."
                )
                return
        labels = kept.labels, kept.text_labels
        for name, loss, unlearned in self._losses(images, texts, *labels):
            if self._stays(name, abs(loss / unlearned - 1)):
                self._warn(
                    f"The loss '{name}' sits at {loss:.2f}, and embeddings "
                    f"that say nothing have {unlearned:.2f}."
                )
                return

    def _losses(self, images, texts, *labels):
        """Each loss, and what it is when embeddings say nothing."""
        labels = [tf.constant(own) for own in labels]
        images, texts = tf.constant(images), tf.constant(texts)
        nothing = tf.zeros_like(images), tf.zeros_like(texts)
        for layer in self.model.matching_losses:
            if layer.counts(*labels):
                unlearned = float(layer(*nothing, *labels))
                if unlearned:
                    loss = float(layer(images, texts, *labels))
                    yield layer.name, loss, unlearned

    def _stays(self, name, distance):
        """Whether all late looks were near a collapse, and not leaving it."""
        looks = self._looks.setdefault(name, [])
        looks.append(distance)
        if distance > _NEAR:
            looks.clear()
        late = looks[-self.patience :]
        if len(late) < self.patience:
            return False
        return late[-1] <= _GROWTH * late[0] + _NOISE

    def _warn(self, message):
        self.warned = True
        _log.warning("%s %s", message, _HELP)


def _some_pairs(split, count):
    """Images drawn from all over a split, each with its first caption."""
    rng = np.random.default_rng(0)
    images = np.sort(rng.permutation(len(split.images))[:count])
    owners, first = np.unique(split.caption_image, return_index=True)
    captions = first[np.searchsorted(owners, images)]
    return CaptionedImages(
        [split.images[i] for i in images],
        [split.captions[i] for i in captions],
        np.arange(len(images)),
        split.labels[images],
    )
