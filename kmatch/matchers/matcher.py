"""The matcher: two towers that meet in one space."""

import os
import random
from collections.abc import Callable, Sequence
from functools import partial

import keras
import numpy as np
import tensorflow as tf

from kmatch.data.batching import batches
from kmatch.data.captioned import CaptionedImages
from kmatch.data.modalities import IMAGE, TEXT
from kmatch.losses.base import MatchingLoss
from kmatch.matchers.encoding import Encoding
from kmatch.matchers.features import FeatureCache
from kmatch.matchers.formats import FORMAT_VERSION, check_format_version
from kmatch.matchers.progress import Progress
from kmatch.towers.tower import Tower


@keras.saving.register_keras_serializable(package="kmatch")
class Matcher(Encoding, keras.Model):
    """Joins an image tower and a text tower in one shared space.

    Each tower is followed by a joint embedding: a dense layer without bias
    and a batch normalisation. The model takes a batch
    `{"image": [n, h, w, 3], "tokens": [m, t]}` and gives
    `{"image": [n, d], "text": [m, d]}`, not normalised. `n` and `m` may
    differ: labels say what belongs together.

    Args:
        image_tower: `kmatch.towers.Tower` fed by images.
        text_tower: `kmatch.towers.Tower` fed by tokens.
        embedding_dim: Dimensions of the shared space.
        batch_norm: Whether the joint embedding ends in batch normalisation.
        batch_norm_momentum: How slowly its statistics move.
        standardize_features: Whether each of the image tower's features is
            brought to mean 0 and deviation 1 first, by a batch normalisation
            without centre and scale. A frozen tower's need it: their
            deviations differ by orders of magnitude.
        kernel_regularizer: For the joint embedding's dense layers.
        freeze_image_tower: Whether the image tower stays as it is. May be
            set later too; `compile` again afterwards.

    >>> import kmatch
    >>> tokenizer = kmatch.text.Tokenizer(["a", "dog"])
    >>> model = kmatch.Matcher(
    ...     image_tower=kmatch.towers.mobilenet(32, 0.25, weights=None),
    ...     text_tower=kmatch.towers.bilstm(tokenizer, units=8),
    ...     embedding_dim=16,
    ... )
    >>> model.encode_texts(["a dog", "a"]).shape
    (2, 16)
    """

    def __init__(
        self,
        image_tower: Tower,
        text_tower: Tower,
        embedding_dim: int = 512,
        batch_norm: bool = True,
        batch_norm_momentum: float = 0.99,
        standardize_features: bool = False,
        kernel_regularizer: keras.Regularizer | None = None,
        freeze_image_tower: bool = False,
        **kwargs,
    ):
        # === Layers ===
        for name, tower, feed in (
            ("image_tower", image_tower, "image_size"),
            ("text_tower", text_tower, "tokenizer"),
        ):
            if getattr(tower, feed, None) is None:
                raise ValueError(
                    f"{name} must be a kmatch.towers.Tower with {feed}. "
                    f"Received: {tower}. Wrap a Keras model with "
                    f"kmatch.towers.Tower(model, {feed}=…)."
                )
        head = [embedding_dim, batch_norm, batch_norm_momentum]
        image_embedding = _joint_embedding(
            "image_embedding", *head, kernel_regularizer, standardize_features
        )
        text_embedding = _joint_embedding(
            "text_embedding", *head, kernel_regularizer
        )

        # === Functional model ===
        inputs = {
            IMAGE.input: keras.Input(
                image_tower.input_shape[1:], name=IMAGE.input
            ),
            TEXT.input: keras.Input([None], dtype="int32", name=TEXT.input),
        }
        outputs = {
            IMAGE.name: image_embedding(image_tower(inputs[IMAGE.input])),
            TEXT.name: text_embedding(text_tower(inputs[TEXT.input])),
        }
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Config ===
        self.image_tower = image_tower
        self.text_tower = text_tower
        self.image_embedding = image_embedding
        self.text_embedding = text_embedding
        self.embedding_dim = embedding_dim
        self.batch_norm = batch_norm
        self.batch_norm_momentum = batch_norm_momentum
        self.standardize_features = standardize_features
        self.kernel_regularizer = kernel_regularizer
        self.freeze_image_tower = freeze_image_tower

        # === State that outlives a process ===
        self.epochs_trained = 0
        self.batch_seed = random.getrandbits(31)

        # === Training and encoding ===
        self.matching_losses = []
        self.image_tower_optimizer = None
        self._loss_means = {}
        self._feature_cache = None

    # === Encoding ===

    def call(self, inputs, training=None, mask=None):
        return self.encode(inputs, training=training)

    @property
    def input_spec(self):
        # A batch may hold features in place of images.
        return None

    def encode(self, inputs: dict, training: bool | None = None) -> dict:
        """Gives the embeddings of a batch, not normalised.

        A batch may hold `image_features` in place of `image`: then the image
        tower is passed over.
        """
        if IMAGE.features in inputs:
            features = inputs[IMAGE.features]
        else:
            features = self.image_tower(
                inputs[IMAGE.input],
                training=training and not self.freeze_image_tower,
            )
        tokens = self.text_tower(inputs[TEXT.input], training=training)
        return {
            IMAGE.name: self.image_embedding(features, training=training),
            TEXT.name: self.text_embedding(tokens, training=training),
        }

    # === Training ===

    @property
    def freeze_image_tower(self) -> bool:
        """Whether the image tower stays as it is in training."""
        return not self.image_tower.trainable

    @freeze_image_tower.setter
    def freeze_image_tower(self, freeze: bool):
        self.image_tower.trainable = not freeze

    def cache_features(self, directory: str | os.PathLike):
        """Keeps the frozen image tower's features on disk from now on.

        While the tower is frozen, `batches`, `RecallAtK` and
        `kmatch.evaluate` compute the features of an image once, whatever
        split it is in, and read them from there ever after, in another
        process too. Results are the same to float tolerance. Of images that
        are mirrored at random (`augment="flip"`) both orientations are kept;
        with any other augmentation, `batches` raises a ValueError. Other
        weights, another size and changed images are computed anew. While
        the tower is not frozen, nothing is read or kept.

        Args:
            directory: Where to keep them, some kilobytes per image. It may
                be shared by models and data sets.

        >>> import tempfile
        >>> import kmatch
        >>> data = kmatch.data.load("shapes")
        >>> tokenizer = kmatch.text.Tokenizer.fit(data.val.captions)
        >>> model = kmatch.Matcher(
        ...     image_tower=kmatch.towers.mobilenet(32, 0.25, weights=None),
        ...     text_tower=kmatch.towers.bilstm(tokenizer, units=8),
        ...     freeze_image_tower=True,
        ... )
        >>> model.cache_features(tempfile.mkdtemp())
        >>> inputs, labels = next(iter(model.batches(data.val, batch_size=4)))
        >>> inputs["image_features"].shape
        TensorShape([4, 256])
        """
        self._feature_cache = FeatureCache(directory, self.image_tower)

    @property
    def _caches_features(self):
        return self._feature_cache is not None and self.freeze_image_tower

    def batches(
        self,
        split: CaptionedImages,
        batch_size: int,
        captions_per_image: int = 1,
        shuffle: bool = False,
        augment: str | Callable | None = None,
        seed: int | None = None,
        samples_per_label: int | None = None,
    ) -> tf.data.Dataset:
        """Returns a split's batches as `fit` takes them.

        An epoch shows every caption exactly once. An image's captions are
        dealt at random into groups, and a group's image goes through the
        tower once. The last batch may be smaller. An image that cannot be
        read is named once, and others take its place.

        Args:
            split: What to show.
            batch_size: Groups, and so images, per batch.
            captions_per_image: Captions per group; an image's last group may
                hold fewer.
            shuffle: Whether to show the groups in random order, those with
                captions of like length together.
            augment: `"flip"` mirrors every other image; never use it where
                captions say left and right. `"crop"`, `"color"` and
                `"randaugment"` are keras-cv's and need it installed. Or a
                function of `(image, seed)`.
            seed: The order depends on nothing but the seed and the number of
                epochs the model has been trained for. By default the model's
                own seed, which is saved with it.
            samples_per_label: For images that share labels, such as those
                of a person: batches of `batch_size / samples_per_label`
                labels with so many groups each. It needs `shuffle`, and
                takes the place of like lengths. An epoch still shows every
                caption once: labels with fewer groups left show these, in
                batches of their own.

        Returns:
            A `tf.data.Dataset` of known length.
        """
        features = None
        if self._caches_features:
            features = partial(self._feature_cache.features, split.images)
        return batches(
            split,
            self.text_tower.tokenizer,
            self.image_tower.image_size,
            batch_size,
            captions_per_image,
            shuffle,
            augment,
            self.batch_seed if seed is None else seed,
            epoch=lambda: self.epochs_trained,
            samples_per_label=samples_per_label,
            features=features,
        )

    def compile(
        self,
        optimizer="adam",
        loss: MatchingLoss | Sequence[MatchingLoss] = None,
        loss_weights: Sequence[float] | None = None,
        image_tower_optimizer=None,
        run_eagerly: bool = False,
        steps_per_execution: int = 1,
        jit_compile: bool | str = "auto",
    ):
        """Configures training.

        Args:
            optimizer: For all weights, or for those outside the image tower
                if it has an optimizer of its own.
            loss: A loss of `kmatch.losses`, or several. Compiling again with
                the same object keeps its weights.
            loss_weights: One factor per loss.
            image_tower_optimizer: Gives the image tower a rate of its own.
                (Scaling its gradients would do nothing under Adam.)
            run_eagerly: Whether to run step by step in Python.
            steps_per_execution: Steps per call of the train function.
            jit_compile: Whether to compile with XLA. `"auto"` is no: on the
                CPU convolutions get slower, and on a GPU the LSTM would lose
                its cuDNN kernel.
        """
        losses = list(loss) if isinstance(loss, (list, tuple)) else [loss]
        check_losses(losses, loss_weights)
        super().compile(
            optimizer=optimizer,
            run_eagerly=run_eagerly,
            steps_per_execution=steps_per_execution,
            jit_compile=jit_compile is True,
        )
        self.image_tower_optimizer = self._loss_scaled(image_tower_optimizer)
        shapes = [(None, self.embedding_dim)] * 2 + [(None,)] * 2
        for layer in losses:
            if not layer.built:
                layer.build(*shapes)
        self.matching_losses.clear()
        self.matching_losses.extend(losses)
        if loss_weights is None:
            loss_weights = [1] * len(losses)
        self.loss_weights = [float(weight) for weight in loss_weights]
        self._loss_means.clear()
        self._log_means(names_of(losses))
        for layer in losses:
            self._log_means(layer.figures)
        self._build_optimizers()

    def _log_means(self, names):
        """Makes room in the logs for means over the batches."""
        self._loss_means.update(
            {name: keras.metrics.Mean(name=name) for name in names}
        )

    def _loss_scaled(self, optimizer):
        """Treats a second optimizer as Keras does the first."""
        optimizer = optimizer and keras.optimizers.get(optimizer)
        scaled = keras.optimizers.LossScaleOptimizer
        if optimizer and isinstance(self.optimizer, scaled):
            if not isinstance(optimizer, scaled):
                return scaled(optimizer)
        return optimizer

    def _build_optimizers(self):
        pairs = self._all_optimizers()
        for optimizer, variables in pairs:
            if not optimizer.built:
                optimizer.build(variables)
        if len(pairs) > 1:
            # At the end of `fit`, Keras hands all of the model's weights to
            # the one optimizer it knows, for it to put its averages there;
            # each has averages of its own weights alone.
            self.optimizer.finalize_variable_values = self._finalize_weights

    def _finalize_weights(self, _):
        for optimizer, variables in self._all_optimizers():
            type(optimizer).finalize_variable_values(optimizer, variables)

    def _optimizers(self):
        """Pairs of an optimizer and the variables it updates."""
        variables = self.matching_variables
        if self.image_tower_optimizer is None:
            return [(self.optimizer, variables)]
        tower = self.image_tower.trainable_variables
        rest = without(variables, tower)
        pairs = [(self.optimizer, rest), (self.image_tower_optimizer, tower)]
        return [(optimizer, own) for optimizer, own in pairs if own]

    def _all_optimizers(self):
        return self._optimizers()

    def train_step(self, data):
        self.update(data)
        return self.get_metrics_result()

    def update(self, data) -> dict:
        """Updates the weights by a batch; returns its embeddings."""
        inputs, labels, _ = keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            embeddings = self.encode(inputs, training=True)
            embeddings, labels = self.gather(embeddings, labels)
            loss = self.measure(embeddings, labels)
            scaled = self.optimizer.scale_loss(loss)
        variables = self.matching_variables
        self.apply_gradients(variables, tape.gradient(scaled, variables))
        return embeddings

    @property
    def matching_variables(self) -> list:
        """What the losses update: all that is trainable."""
        return self.trainable_variables

    def test_step(self, data):
        inputs, labels, _ = keras.utils.unpack_x_y_sample_weight(data)
        embeddings = self.encode(inputs, training=False)
        self.measure(*self.gather(embeddings, labels))
        return self.get_metrics_result()

    def gather(self, embeddings: dict, labels: dict) -> tuple[dict, dict]:
        """Brings together what is compared: here, the batch as it is."""
        return embeddings, labels

    def measure(self, embeddings: dict, labels: dict) -> tf.Tensor:
        """Computes, weighs and logs the losses; returns their sum."""
        total = tf.add_n([tf.cast(x, tf.float32) for x in self.losses] or [0.0])
        for name, (value, weight, counts) in self.terms(
            embeddings, labels
        ).items():
            self.log(name, value, counts)
            total += weight * value
        self._loss_tracker.update_state(total)
        return total

    def terms(self, embeddings: dict, labels: dict) -> dict[str, tuple]:
        """Each loss by name: its value, weight, and whether it counts."""
        labels = labels[IMAGE.label], labels[TEXT.label]
        terms = {}
        for layer, weight, name in zip(
            self.matching_losses,
            self.loss_weights,
            names_of(self.matching_losses),
        ):
            value = layer(
                embeddings[IMAGE.name], embeddings[TEXT.name], *labels
            )
            terms[name] = value, weight, layer.counts(*labels)
            for figure, number in layer.observe(*labels).items():
                self.log(figure, number)
        return terms

    def log(self, name: str, value: tf.Tensor, counts: tf.Tensor | bool = True):
        """Adds a batch's value to the mean in the logs, if it counts."""
        self._loss_means[name].update_state(
            value, sample_weight=tf.cast(counts, tf.float32)
        )

    def apply_gradients(self, variables: list, gradients: list):
        """Updates each variable with the optimizer it belongs to."""
        # A word that is twice in a batch has two gradients. Keras's Adam
        # would square them one by one and overstep: add them up first.
        gradients = [
            tf.convert_to_tensor(g) if isinstance(g, tf.IndexedSlices) else g
            for g in gradients
        ]
        gradient_of = {id(v): g for v, g in zip(variables, gradients)}
        scale = self.optimizer.scale_loss(1.0)
        for optimizer, own in self._optimizers():
            own_gradients = [gradient_of[id(v)] for v in own]
            if optimizer is not self.optimizer:
                # Each optimizer takes its own loss scale out again.
                factor = optimizer.scale_loss(1.0) / scale
                own_gradients = [
                    g if g is None else g * tf.cast(factor, g.dtype)
                    for g in own_gradients
                ]
            optimizer.apply(own_gradients, own)

    @property
    def metrics(self):
        if not self.compiled:
            return []
        return [self._loss_tracker, *self._loss_means.values()]

    @property
    def only_logged(self) -> set[str]:
        """Names of what is in the logs, but too much for the bar."""
        figures = [layer.figures for layer in self.matching_losses]
        return {name for names in figures for name in names}

    def unmeasured(self) -> set[str]:
        """Names of losses that found nothing to measure since the reset."""
        return {
            name
            for name, mean in self._loss_means.items()
            if float(mean.count) == 0
        }

    def fit(self, x=None, *args, callbacks=None, verbose="auto", **kwargs):
        """Trains, as `keras.Model.fit` does."""
        if isinstance(x, tf.data.Dataset):
            kwargs.setdefault("shuffle", False)
        # First, so that every other callback sees the epoch as done.
        callbacks = [_CountEpochs(), *_listed(callbacks)]
        if verbose != 0:
            callbacks.append(Progress())
        return super().fit(
            x, *args, callbacks=callbacks, verbose=verbose, **kwargs
        )

    def evaluate(
        self,
        *args,
        callbacks=None,
        verbose="auto",
        return_dict=False,
        **kwargs,
    ):
        """Measures the losses, as `keras.Model.evaluate` does.

        Losses that found nothing to measure are left out. Retrieval is
        measured by `kmatch.evaluate`.
        """
        if not isinstance(callbacks, keras.callbacks.CallbackList):
            callbacks = _listed(callbacks)
            if verbose != 0:
                callbacks.append(Progress())
        logs = super().evaluate(
            *args,
            callbacks=callbacks,
            verbose=verbose,
            return_dict=True,
            **kwargs,
        )
        for name in self.unmeasured():
            logs.pop(name, None)
        if return_dict:
            return logs
        return list(logs.values())

    # === Saving ===

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        return {
            "format_version": FORMAT_VERSION,
            "image_tower": serialize(self.image_tower),
            "text_tower": serialize(self.text_tower),
            "embedding_dim": self.embedding_dim,
            "batch_norm": self.batch_norm,
            "batch_norm_momentum": self.batch_norm_momentum,
            "standardize_features": self.standardize_features,
            "kernel_regularizer": serialize(self.kernel_regularizer),
            "freeze_image_tower": self.freeze_image_tower,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = dict(config)
        check_format_version(config.pop("format_version"))
        for key in ("image_tower", "text_tower", "kernel_regularizer"):
            config[key] = keras.saving.deserialize_keras_object(
                config[key], custom_objects=custom_objects
            )
        return cls(**config)

    def get_compile_config(self):
        if not self.compiled:
            return {}
        config = {
            "optimizer": self.optimizer,
            "loss": list(self.matching_losses),
            "loss_weights": list(self.loss_weights),
            "image_tower_optimizer": self.image_tower_optimizer,
            "run_eagerly": self.run_eagerly,
            "steps_per_execution": self.steps_per_execution,
            "jit_compile": self.jit_compile,
        }
        return {
            key: keras.saving.serialize_keras_object(value)
            for key, value in config.items()
        }

    def compile_from_config(self, config):
        self.compile(**keras.saving.deserialize_keras_object(config))

    def save_own_variables(self, store):
        # Keras's files leave these out; without them a training that goes on
        # from a file would see other dropout and another order of the data.
        store["epochs_trained"] = np.int64(self.epochs_trained)
        store["batch_seed"] = np.int64(self.batch_seed)
        for i, generator in enumerate(self._all_seed_generators()):
            store[f"seed_{i}"] = generator.state.numpy()

    def load_own_variables(self, store):
        self.epochs_trained = int(store["epochs_trained"][()])
        self.batch_seed = int(store["batch_seed"][()])
        for i, generator in enumerate(self._all_seed_generators()):
            generator.state.assign(store[f"seed_{i}"])

    def _all_seed_generators(self):
        layers = self._flatten_layers()
        return [seeds for layer in layers for seeds in layer._seed_generators]


class _CountEpochs(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.model.epochs_trained += 1


def _joint_embedding(
    name, embedding_dim, batch_norm, momentum, regularizer, standardize=False
):
    layers = []
    if standardize:
        layers.append(
            keras.layers.BatchNormalization(center=False, scale=False)
        )
    layers.append(
        keras.layers.Dense(
            embedding_dim, use_bias=False, kernel_regularizer=regularizer
        )
    )
    if batch_norm:
        layers.append(keras.layers.BatchNormalization(momentum=momentum))
    return keras.Sequential(layers, name=name)


def check_losses(
    losses: Sequence[MatchingLoss], loss_weights: Sequence[float] | None = None
):
    """Refuses what is no loss, and another number of factors."""
    for loss in losses:
        if not isinstance(loss, MatchingLoss):
            raise ValueError(
                "loss must be a loss of kmatch.losses, or a list of them. "
                f"Received: {loss!r}."
            )
    if loss_weights is not None and len(loss_weights) != len(losses):
        raise ValueError(
            "loss_weights holds one factor per loss. Received "
            f"{len(losses)} losses and {len(loss_weights)} factors."
        )


def names_of(losses: Sequence[MatchingLoss]) -> list[str]:
    """Under which name each is logged."""
    names = []
    for loss in losses:
        repeats = sum(loss.name == other.name for other in losses[: len(names)])
        names.append(f"{loss.name}_{repeats + 1}" if repeats else loss.name)
    return names


def without(variables: list, others: list) -> list:
    """Those of the variables that are not among the others."""
    ids = {id(variable) for variable in others}
    return [v for v in variables if id(v) not in ids]


def _listed(callbacks):
    if isinstance(callbacks, keras.callbacks.Callback):
        return [callbacks]
    return list(callbacks or [])
