"""Encoding: from raw images and texts to embeddings."""

from collections.abc import Sequence
from functools import cached_property, partial

import numpy as np
import tensorflow as tf

from kmatch.data.images import check_images, image_name, readable_images
from kmatch.losses.base import normalize
from kmatch.matchers.progress import show_if_long
from kmatch.text.tokenizer import as_utf8


class Encoding:
    """The part of a matcher that encodes outside of training."""

    def embed_images(
        self, images: tf.Tensor, normalized: bool = True
    ) -> tf.Tensor:
        """Embeddings of decoded images `[n, h, w, 3]`."""
        features = self.image_tower(images, training=False)
        return self.embed_image_features(features, normalized)

    def embed_image_features(
        self, features: tf.Tensor, normalized: bool = True
    ) -> tf.Tensor:
        """Embeddings of the image tower's features."""
        embeddings = self.image_embedding(features, training=False)
        embeddings = tf.cast(embeddings, tf.float32)
        return normalize(embeddings) if normalized else embeddings

    def embed_tokens(
        self, tokens: tf.Tensor, normalized: bool = True
    ) -> tf.Tensor:
        """Embeddings of token ids `[n, t]`."""
        features = self.text_tower(tokens, training=False)
        embeddings = self.text_embedding(features, training=False)
        embeddings = tf.cast(embeddings, tf.float32)
        return normalize(embeddings) if normalized else embeddings

    def encode_images(
        self, images: Sequence, batch_size: int = 64
    ) -> np.ndarray:
        """Encodes images.

        Args:
            images: Paths, arrays `[height, width, 3]` with values in 0..255,
                or encoded files as `bytes`.
            batch_size: Images at a time.

        Returns:
            float32 `[n, embedding_dim]`, l2-normalised.

        Raises:
            ValueError: If images cannot be read; it names them all.
        """
        embeddings, readable = self._embed_all(
            self._read(images, batch_size), self._embed_images
        )
        unreadable = sorted(set(range(len(images))) - set(readable.tolist()))
        if unreadable:
            names = ", ".join(image_name(images, i) for i in unreadable)
            raise ValueError(
                f"{len(unreadable)} of {len(images)} images cannot be read: "
                f"{names}. They must be JPEG, PNG, GIF, BMP or WebP files."
            )
        return embeddings

    def encode_readable_images(
        self,
        images: Sequence,
        batch_size: int = 64,
        progress: bool = True,
        normalized: bool = True,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Encodes those images that can be read, with `cache_features` too.

        Args:
            images: As for `encode_images`.
            batch_size: Images at a time.
            progress: Whether to show a progress bar when it takes long.
            normalized: Whether embeddings have norm 1.

        Returns:
            Their embeddings, and their indices.
        """
        images = check_images(images)
        if len(images) and self._caches_features:
            features = self._feature_cache.features(images, progress=progress)
            # Features are small beside images: many at a time.
            batches, embed = features.batches(1024), self._embed_features
        else:
            batches = self._read(images, batch_size, progress)
            embed = self._embed_images
        return self._embed_all(batches, embed, normalized)

    def encode_texts(
        self,
        texts: Sequence[str],
        batch_size: int = 256,
        progress: bool = True,
        normalized: bool = True,
    ) -> np.ndarray:
        """Encodes texts.

        Args:
            texts: List of strings.
            batch_size: Texts at a time.
            progress: Whether to show a progress bar when it takes long.
            normalized: Whether embeddings have norm 1.

        Returns:
            float32 `[n, embedding_dim]`.
        """
        if isinstance(texts, (str, bytes)):
            raise ValueError(
                "encode_texts takes a list of strings. Received the one "
                f"string {texts!r}: put it into a list."
            )
        texts = as_utf8(texts)
        # Those of like length together, so that little is padded.
        order = np.argsort([len(text) for text in texts], kind="stable")
        starts = range(0, len(texts), batch_size)
        embeddings = np.empty([len(texts), self.embedding_dim], np.float32)
        for start in show_if_long(starts, len(starts), progress):
            rows = order[start : start + batch_size]
            tokens = self.text_tower.tokenizer([texts[row] for row in rows])
            own = self._embed_tokens(tokens)
            embeddings[rows] = normalize(own) if normalized else own
        return embeddings

    def _read(self, images, batch_size, progress=True):
        images = check_images(images)
        if len(images) == 0:
            return []
        dataset = readable_images(
            images, self.image_tower.image_size, batch_size
        )
        total = -(-len(images) // batch_size)
        return show_if_long(dataset, total, progress)

    def _embed_all(self, batches, embed, normalized=True):
        readable = [np.zeros([0], np.int64)]
        embeddings = [np.zeros([0, self.embedding_dim], np.float32)]
        for index, batch in batches:
            own = embed(tf.convert_to_tensor(batch))
            readable.append(np.asarray(index))
            embeddings.append(normalize(own) if normalized else own)
        return np.concatenate(embeddings), np.concatenate(readable)

    @cached_property
    def _embed_images(self):
        return _traced(self.embed_images, self.image_tower.input_shape[1:])

    @cached_property
    def _embed_features(self):
        return _traced(
            self.embed_image_features, self.image_tower.output_shape[1:]
        )

    @cached_property
    def _embed_tokens(self):
        return _traced(self.embed_tokens, [None], tf.int32)


def _traced(embed, shape, dtype=tf.float32):
    # A function that traces itself when called warns a process that builds
    # many models of retracing.
    function = tf.function(
        partial(embed, normalized=False),
        input_signature=[tf.TensorSpec([None, *shape], dtype)],
    )
    return function.get_concrete_function()
