"""Export to a SavedModel that TF Serving takes as it is."""

import contextlib
import json
import os
import shutil
import tempfile
from pathlib import Path

import tensorflow as tf

from kmatch.data.images import decode_image
from kmatch.matchers.formats import FORMAT_VERSION
from kmatch.matchers.matcher import Matcher
from kmatch.matchers.saved import METADATA, versions


def export(model: Matcher, directory: str | os.PathLike) -> Path:
    """Writes a matcher as the next version of a served model.

    `directory/1/`, then `2/` and so on, holds a SavedModel with the
    signatures

    - `encode_image`: `image_bytes`, string `[n]`, to `embedding`, float32
      `[n, d]`;
    - `encode_text`: `text`, string `[n]`, to `embedding`, `[n, d]`; also the
      default;
    - `match`: both inputs, `[n]` and `[m]`, to `similarity`, `[n, m]`.

    Embeddings are l2-normalised. Images are raw files (JPEG, PNG, GIF, BMP
    or WebP), text is raw UTF-8: decoding and tokenising are part of the
    graph. A version appears whole or not at all.

    Args:
        model: A `kmatch.Matcher`.
        directory: The model's folder, `--model_base_path` for TF Serving.

    Returns:
        The folder of the version.

    >>> import tempfile
    >>> import kmatch
    >>> tokenizer = kmatch.text.Tokenizer(["a", "dog"])
    >>> model = kmatch.Matcher(
    ...     image_tower=kmatch.towers.mobilenet(32, 0.25, weights=None),
    ...     text_tower=kmatch.towers.bilstm(tokenizer, units=8),
    ...     embedding_dim=16,
    ... )
    >>> kmatch.export(model, tempfile.mkdtemp()).name
    '1'
    """
    if not isinstance(model, Matcher):
        raise ValueError(
            "Only a kmatch.Matcher can be exported. Received: "
            f"{type(model).__name__}."
        )
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    # In the same folder, since only within a file system a move is one step.
    # TF Serving passes over folders that are not numbers.
    temporary = Path(tempfile.mkdtemp(prefix=".export-", dir=directory))
    try:
        module = _ServedMatcher(model)
        with _without_cudnn(model):
            tf.saved_model.save(module, temporary, module.signatures())
        (temporary / METADATA).write_text(
            json.dumps(
                {
                    "format_version": FORMAT_VERSION,
                    "embedding_dim": model.embedding_dim,
                    "image_size": model.image_tower.image_size,
                }
            )
        )
        os.chmod(temporary, 0o755)
        return _move_to_next_version(temporary, directory)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


class _ServedMatcher(tf.Module):
    """The towers and joint embeddings, from raw bytes and raw strings."""

    def __init__(self, model):
        super().__init__()
        # Methods and not the model, which would be saved with its losses and
        # optimizers.
        self._embed_images = model.embed_images
        self._embed_tokens = model.embed_tokens
        self._image_size = model.image_tower.image_size
        self._tokenize = model.text_tower.tokenizer.__call__
        parts = (
            model.image_tower, model.image_embedding,
            model.text_tower, model.text_embedding,
        )  # fmt: skip
        self.weights = [v.value for part in parts for v in part.variables]
        self.table = model.text_tower.tokenizer.table

    def encode_image(self, image_bytes):
        size = self._image_size
        images = tf.map_fn(
            lambda data: decode_image(data, size),
            image_bytes,
            fn_output_signature=tf.TensorSpec([size, size, 3]),
        )
        return self._embed_images(images)

    def encode_text(self, text):
        return self._embed_tokens(self._tokenize(text))

    def signatures(self):
        image_bytes = tf.TensorSpec([None], tf.string, name="image_bytes")
        text = tf.TensorSpec([None], tf.string, name="text")

        @tf.function(input_signature=[image_bytes])
        def encode_image(image_bytes):
            return {"embedding": self.encode_image(image_bytes)}

        @tf.function(input_signature=[text])
        def encode_text(text):
            return {"embedding": self.encode_text(text)}

        @tf.function(input_signature=[image_bytes, text])
        def match(image_bytes, text):
            return {
                "similarity": tf.matmul(
                    self.encode_image(image_bytes),
                    self.encode_text(text),
                    transpose_b=True,
                )
            }

        encode_text = encode_text.get_concrete_function()
        return {
            "encode_image": encode_image.get_concrete_function(),
            "encode_text": encode_text,
            "match": match.get_concrete_function(),
            "serving_default": encode_text,
        }


@contextlib.contextmanager
def _without_cudnn(model):
    """Traces recurrent layers so that a server without a GPU can run them."""
    layers = [x for x in model._flatten_layers() if hasattr(x, "use_cudnn")]
    before = [layer.use_cudnn for layer in layers]
    try:
        for layer in layers:
            layer.use_cudnn = False
        yield
    finally:
        for layer, use_cudnn in zip(layers, before):
            layer.use_cudnn = use_cudnn


def _move_to_next_version(temporary, directory):
    while True:
        version = directory / str(max(versions(directory), default=0) + 1)
        try:
            os.rename(temporary, version)
            return version
        except OSError:
            # Another export took the number in between; an empty folder of
            # that name would have been replaced.
            if not version.exists():
                raise
