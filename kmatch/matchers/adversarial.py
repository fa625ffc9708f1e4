"""The matcher whose encoders play against a discriminator of modalities."""

import math
from collections.abc import Mapping, Sequence

import keras
import tensorflow as tf

from kmatch.data.modalities import IMAGE, TEXT
from kmatch.losses.adversarial import (
    GradientReversal,
    modality_accuracy,
    modality_classification,
    negative_entropy,
)
from kmatch.losses.balance import LabelBalance
from kmatch.losses.base import MatchingLoss
from kmatch.losses.projection import CMPC, CMPM
from kmatch.losses.triplets import Triplet
from kmatch.matchers.matcher import Matcher, check_losses, names_of, without
from kmatch.towers.tower import Tower

PARADIGMS = ("unified", "separate")
ENTROPY = "negative_entropy"
CLASSIFICATION = "modality_classification"
ADVERSARIAL = ENTROPY, CLASSIFICATION
ACCURACY = "discriminator_accuracy"
ENTROPY_IN_BITS = "modality_entropy"


@keras.saving.register_keras_serializable(package="kmatch")
class AdversarialMatcher(Matcher):
    """A `Matcher` whose embeddings do not tell their modality (ITMeetsAL).

    Chen et al., "Integrating Information Theory and Adversarial Learning for
    Cross-modal Retrieval", Pattern Recognition 2021. A discriminator learns
    to tell embeddings of images from those of texts, and the encoders learn
    to leave it undecided (Algorithm 1):

    - each step updates towers, joint embeddings and label classifier by
      L_ce + L_di + L_kl + L_tr + L_s, the discriminator staying as it is;
    - each k-th step then updates the discriminator by L_c, on that step's
      embeddings.

    In the `"unified"` paradigm (Fig. 4) one network classifies modalities,
    and its uncertainty is L_s. In the `"separate"` one (Fig. 7) L_s is the
    uncertainty of a predictor that is trained with the encoders, and these
    are also trained against the modality classifier, through a gradient
    reversal; there `loss` in the logs holds L_c, which the encoders raise.

    The logs hold each term under its function's name, `modality_entropy`, how
    undecided the discriminator is, up to 1 bit, `discriminator_accuracy`, of
    which each modality is half, so that 0.5 is chance, and how many anchors
    had a positive in each direction of `kmatch.losses.triplet`.

    `export` leaves the discriminator out.

    Args:
        image_tower: `kmatch.towers.Tower` fed by images.
        text_tower: `kmatch.towers.Tower` fed by tokens.
        embedding_dim: Dimensions of the shared space.
        num_classes: Number of training labels, for the label classifier.
        paradigm: `"unified"` or `"separate"`.
        discriminator_units: Sizes of the discriminator's hidden layers.
        reversal: λ of the gradient reversal, in the separate paradigm.
        **kwargs: Further arguments of `kmatch.Matcher`.

    >>> import kmatch
    >>> tokenizer = kmatch.text.Tokenizer(["a", "dog"])
    >>> model = kmatch.AdversarialMatcher(
    ...     image_tower=kmatch.towers.mobilenet(32, 0.25, weights=None),
    ...     text_tower=kmatch.towers.bilstm(tokenizer, units=8),
    ...     embedding_dim=16,
    ...     num_classes=10,
    ... )
    >>> model.compile(
    ...     optimizer="adam", discriminator_optimizer="adam",
    ...     discriminator_every=5, loss_weights={"label_balance": 0.5},
    ... )
    >>> [layer.units for layer in model.discriminator.layers]
    [256, 128, 2]
    """

    def __init__(
        self,
        image_tower: Tower,
        text_tower: Tower,
        embedding_dim: int = 512,
        num_classes: int | None = None,
        paradigm: str = "unified",
        discriminator_units: Sequence[int] = (256, 128),
        reversal: float = 1.0,
        **kwargs,
    ):
        if paradigm not in PARADIGMS:
            raise ValueError(
                f"paradigm must be one of {PARADIGMS}. Received: {paradigm!r}."
            )
        if isinstance(discriminator_units, int):
            raise ValueError(
                "discriminator_units lists the sizes of the hidden layers. "
                f"Received: {discriminator_units}: put it into a list."
            )
        super().__init__(image_tower, text_tower, embedding_dim, **kwargs)

        # === Layers ===
        shape = [None, embedding_dim]
        self.discriminator = _network("discriminator", discriminator_units)
        self.discriminator.build(shape)
        self.uncertainty_predictor = None
        if paradigm == "separate":
            self.uncertainty_predictor = _network(
                "uncertainty_predictor", discriminator_units
            )
            self.uncertainty_predictor.build(shape)
            self.gradient_reversal = GradientReversal(reversal)

        # === Config ===
        self.num_classes = num_classes
        self.paradigm = paradigm
        self.discriminator_units = tuple(discriminator_units)
        self.reversal = reversal

        # === State that outlives a process ===
        self.generator_steps = keras.Variable(
            0,
            dtype="int64",
            trainable=False,
            aggregation="only_first_replica",
            name="generator_steps",
        )

        # === Training ===
        self.discriminator_optimizer = None
        self.discriminator_every = 5
        self.adversarial_weights = {ENTROPY: 1.0, CLASSIFICATION: 1.0}

    def compile(
        self,
        optimizer="adam",
        discriminator_optimizer="adam",
        discriminator_every: int = 5,
        image_tower_optimizer=None,
        loss: Sequence[MatchingLoss] | None = None,
        loss_weights: Mapping[str, float] | None = None,
        tau: float = 4.0,
        margin: float = 0.5,
        **kwargs,
    ):
        """Configures training.

        Args:
            optimizer: For all weights but the discriminator's, or for those
                outside the image tower if it has an optimizer of its own.
            discriminator_optimizer: For the discriminator.
            discriminator_every: k: after so many updates by `optimizer`,
                counted across epochs, the discriminator gets one.
            image_tower_optimizer: Gives the image tower a rate of its own.
            loss: In place of the paper's `[CMPC(num_classes),
                LabelBalance(…, tau), CMPM(), Triplet(margin)]`: L_ce, L_di,
                L_kl and L_tr.
            loss_weights: Factors by the names in the logs: `cmpc`,
                `label_balance`, `cmpm`, `triplet`, `negative_entropy` (L_s)
                and `modality_classification` (L_c). Those left out are 1.
                With 0 a term is switched off; without L_s the discriminator
                watches, and without L_c it is never updated.
            tau: Temperature of L_di.
            margin: Of L_tr.
            **kwargs: `run_eagerly`, `steps_per_execution` and `jit_compile`,
                as for `Matcher.compile`.
        """
        every = discriminator_every
        if not isinstance(every, int) or isinstance(every, bool) or every < 1:
            raise ValueError(
                "discriminator_every must be a whole number from 1 on. "
                f"Received: {discriminator_every}."
            )
        _check_own(discriminator_optimizer, optimizer, image_tower_optimizer)
        if loss is None:
            loss = self._paper_losses(tau, margin)
        losses = list(loss) if isinstance(loss, (list, tuple)) else [loss]
        check_losses(losses)
        weights = _weights_by_name(loss_weights, names_of(losses))
        on = [(x, w) for x, w in zip(losses, weights.values()) if w]
        super().compile(
            optimizer,
            loss=[x for x, _ in on],
            loss_weights=[w for _, w in on],
            image_tower_optimizer=image_tower_optimizer,
            **kwargs,
        )
        self.discriminator_optimizer = self._loss_scaled(
            discriminator_optimizer
        )
        self.discriminator_every = discriminator_every
        self.adversarial_weights = {x: weights[x] for x in ADVERSARIAL}
        self._log_means([*ADVERSARIAL, ACCURACY, ENTROPY_IN_BITS])
        self._build_optimizers()

    def _paper_losses(self, tau, margin):
        classifier = self._label_classifier()
        return [
            classifier,
            LabelBalance(classifier, tau),
            CMPM(),
            Triplet(margin),
        ]

    def _label_classifier(self):
        """That of the last `compile`, or a new one."""
        for layer in self.matching_losses:
            if isinstance(layer, LabelBalance):
                return layer.classifier
            if isinstance(layer, CMPC):
                return layer
        if self.num_classes is None:
            raise ValueError(
                "AdversarialMatcher needs num_classes, the number of training "
                "labels, for its label classifier. Pass num_classes=…, or "
                "compile with loss=[…] without CMPC and LabelBalance."
            )
        return CMPC(self.num_classes)

    def _all_optimizers(self):
        pairs = super()._all_optimizers()
        if self.discriminator_optimizer is None:
            return pairs
        own = self.discriminator.trainable_variables
        return [*pairs, (self.discriminator_optimizer, own)]

    @property
    def matching_variables(self):
        """What the encoders' losses update: all but the discriminator."""
        return without(self.trainable_variables, self.discriminator.variables)

    @property
    def only_logged(self):
        terms = names_of(self.matching_losses)
        return {*super().only_logged, *terms, *ADVERSARIAL}

    # === Algorithm 1 ===

    def train_step(self, data):
        embeddings = self.generator_step(data)
        due = self.generator_steps % self.discriminator_every == 0
        if self.adversarial_weights[CLASSIFICATION]:
            self.discriminator_step(embeddings, due)
        return self.get_metrics_result()

    def generator_step(self, data) -> dict:
        """Updates all but the discriminator by a batch (lines 3 to 14).

        Args:
            data: A batch, as `fit` takes it.

        Returns:
            The batch's embeddings before the update.
        """
        embeddings = self.update(data)
        self.generator_steps.assign_add(1)
        return embeddings

    def discriminator_step(
        self, embeddings: dict, due: tf.Tensor | bool = True
    ) -> tf.Tensor:
        """Updates the discriminator alone, by L_c (lines 16 and 17).

        Args:
            embeddings: `{"image": [n, d], "text": [m, d]}`, taken as they
                are: no gradient goes into them.
            due: Whether there is anything to update: where not, neither the
                discriminator nor its optimizer is any different afterwards.

        Returns:
            L_c before the update.
        """
        optimizer = self.discriminator_optimizer
        variables = self.discriminator.trainable_variables
        frozen = {name: tf.stop_gradient(x) for name, x in embeddings.items()}
        with tf.GradientTape() as tape:
            loss = modality_classification(*self.discriminate(frozen))
            weighted = self.adversarial_weights[CLASSIFICATION] * loss
            scaled = optimizer.scale_loss(weighted)
        gradients = tape.gradient(scaled, variables)
        state = [*variables, *optimizer.variables]
        before = [tf.identity(variable.value) for variable in state]
        optimizer.apply(gradients, variables)
        # Not a branch around the update: that fails in distribution.
        _undo_unless(due, [variable.value for variable in state], before)
        return loss

    def discriminate(self, embeddings: dict) -> tuple[tf.Tensor, tf.Tensor]:
        """The discriminator's logits `[n, 2]` and `[m, 2]`: image, text."""
        return _for_both(self.discriminator, embeddings)

    def terms(self, embeddings, labels):
        terms = super().terms(embeddings, labels)
        weights = self.adversarial_weights
        if self.paradigm == "unified":
            logits = uncertain = self.discriminate(embeddings)
            against = 0.0  # L_c is the discriminator's alone
        else:
            uncertain = _for_both(self.uncertainty_predictor, embeddings)
            logits = _for_both(
                lambda x: self.discriminator(self.gradient_reversal(x)),
                embeddings,
            )
            against = weights[CLASSIFICATION]
        terms[ENTROPY] = negative_entropy(*uncertain), weights[ENTROPY], True
        terms[CLASSIFICATION] = modality_classification(*logits), against, True
        self.log(ACCURACY, modality_accuracy(*logits))
        nats = -negative_entropy(*logits) / 2
        self.log(ENTROPY_IN_BITS, nats / math.log(2))
        return terms

    # === Saving ===

    def get_config(self):
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "paradigm": self.paradigm,
            "discriminator_units": list(self.discriminator_units),
            "reversal": self.reversal,
        }

    def get_compile_config(self):
        config = super().get_compile_config()
        if not config:
            return config
        serialize = keras.saving.serialize_keras_object
        names = names_of(self.matching_losses)
        weights = dict(zip(names, self.loss_weights)) | self.adversarial_weights
        return {
            **config,
            "loss_weights": weights,
            "discriminator_optimizer": serialize(self.discriminator_optimizer),
            "discriminator_every": self.discriminator_every,
        }

    def save_own_variables(self, store):
        super().save_own_variables(store)
        store["generator_steps"] = self.generator_steps.numpy()

    def load_own_variables(self, store):
        super().load_own_variables(store)
        self.generator_steps.assign(store["generator_steps"][()])


def _network(name, units):
    """Fully connected layers that end in two logits: image and text."""
    dense = keras.layers.Dense
    return keras.Sequential(
        [
            *(dense(n, activation="relu", dtype="float32") for n in units),
            dense(2, dtype="float32"),
        ],
        name=name,
    )


def _for_both(network, embeddings):
    return network(embeddings[IMAGE.name]), network(embeddings[TEXT.name])


def _undo_unless(due, variables, before):
    """Gives variables their earlier values back, unless it is due."""

    def restore(variable, due, earlier):
        variable.assign(tf.where(due, variable, earlier))

    def restore_all(strategy, due, before):
        for variable, earlier in zip(variables, before):
            strategy.extended.update(
                variable, restore, args=(due, earlier), group=False
            )

    if due is not True:
        replica = tf.distribute.get_replica_context()
        replica.merge_call(restore_all, args=(due, before))


def _weights_by_name(loss_weights, names):
    """A factor for each of the terms, 1 where none is given."""
    names = [*names, *ADVERSARIAL]
    if not isinstance(loss_weights or {}, Mapping):
        raise ValueError(
            f"loss_weights is a dictionary by the terms' names, {names}. "
            f"Received: {loss_weights!r}."
        )
    given = dict(loss_weights or {})
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise ValueError(
            f"loss_weights names {unknown}, and the terms are {names}."
        )
    weights = {name: float(given.get(name, 1)) for name in names}
    for name, weight in weights.items():
        if not 0 <= weight < math.inf:
            raise ValueError(
                "Factors in loss_weights are finite and not below 0. "
                f"Received: {weight} for '{name}'."
            )
    return weights


def _check_own(discriminator_optimizer, *others):
    if discriminator_optimizer is None:
        raise ValueError(
            "discriminator_optimizer must be an optimizer. Received: None. To "
            "never update the discriminator, pass "
            'loss_weights={"modality_classification": 0}.'
        )
    if isinstance(discriminator_optimizer, keras.optimizers.Optimizer):
        if any(discriminator_optimizer is other for other in others):
            raise ValueError(
                "discriminator_optimizer must be an optimizer of its own: "
                "optimizers remember the weights they update."
            )
