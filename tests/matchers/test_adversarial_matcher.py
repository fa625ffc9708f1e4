"""Algorithm 1, on towers that are quick to trace."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import kmatch
from kmatch.losses.adversarial import modality_accuracy
from tests.reference import itmeetsal as reference

BITS = 5
TERMS = {"cmpc", "label_balance", "cmpm", "triplet"}
ANCHORS = {"i2t_anchors", "t2i_anchors", "i2i_anchors", "t2t_anchors"}
WATCHED = {
    "negative_entropy", "modality_classification",
    "discriminator_accuracy", "modality_entropy",
}  # fmt: skip


def coded_pairs(copies, seed):
    """Images and captions that say a number's bits, each in its own way.

    Images are bright: their features are far from those of texts, and yet
    linear maps can bring both to the same places.
    """
    rng = np.random.default_rng(seed)
    patterns = np.random.default_rng(0).normal(0, 12, size=[BITS, 48])
    images, captions, labels = [], [], []
    for label in np.repeat(np.arange(2**BITS), copies):
        bits = label >> np.arange(BITS) & 1
        pixels = 170 + (2 * bits - 1) @ patterns
        images.append(np.clip(pixels, 0, 255).reshape(4, 4, 3).astype("u1"))
        words = [
            f"bit{i}{'yes' if bit else 'no'}" for i, bit in enumerate(bits)
        ]
        captions.append(" ".join(rng.permutation(words)))
        labels.append(label)
    return kmatch.data.from_pairs(images, captions, labels)


@pytest.fixture(scope="module")
def pairs():
    return coded_pairs(copies=4, seed=1)


@pytest.fixture(scope="module")
def build(pairs):
    tokenizer = kmatch.text.Tokenizer.fit(pairs.captions, min_count=1)

    def build(batch_norm=True, **kwargs):
        keras.utils.set_random_seed(0)
        layers = keras.layers
        pixels = keras.Sequential(
            [
                layers.Rescaling(1 / 64),
                layers.BatchNormalization(center=False, scale=False)
                if batch_norm
                else layers.Identity(),
                layers.Flatten(),
                layers.Dense(24),
            ]
        )
        tokens = keras.Input([None], dtype="int32")
        x = layers.Embedding(len(tokenizer.vocabulary), 16, mask_zero=True)
        words = layers.GlobalAveragePooling1D()(x(tokens))
        return kmatch.AdversarialMatcher(
            kmatch.towers.Tower(pixels, image_size=4),
            kmatch.towers.Tower(
                keras.Model(tokens, words), tokenizer=tokenizer
            ),
            embedding_dim=16,
            num_classes=2**BITS,
            batch_norm=batch_norm,
            batch_norm_momentum=0.9,
            discriminator_units=(32, 16),
            **kwargs,
        )

    return build


def compiled(model, every=5, **kwargs):
    """With three optimizers that all remember something."""
    adam = keras.optimizers.Adam
    model.compile(
        optimizer=adam(3e-3),
        discriminator_optimizer=adam(3e-3),
        image_tower_optimizer=adam(1e-3),
        discriminator_every=every,
        **kwargs,
    )
    return model


def batches(model, pairs, **kwargs):
    return model.batches(pairs, batch_size=32, seed=3, **kwargs)


def values(variables):
    return [np.array(variable) for variable in variables]


def changed(before, variables):
    return [
        variable.path
        for old, variable in zip(before, variables, strict=True)
        if not np.array_equal(old, variable)
    ]


def of_discriminator(model):
    return [
        *model.discriminator.variables,
        *model.discriminator_optimizer.variables,
    ]


def of_generator(model):
    """Towers, embeddings, statistics, label classifier, optimizers, count."""
    ids = {id(v) for v in model.discriminator.variables}
    return [
        *(v for v in model.variables if id(v) not in ids),
        *model.optimizer.variables,
        *model.image_tower_optimizer.variables,
    ]


@pytest.mark.parametrize("paradigm", ["unified", "separate"])
def test_each_step_leaves_the_others_weights_alone(build, pairs, paradigm):
    model = compiled(build(paradigm=paradigm))
    data = next(iter(batches(model, pairs)))
    discriminator = values(of_discriminator(model))
    generator = values(of_generator(model))
    embeddings = model.generator_step(data)
    assert changed(discriminator, of_discriminator(model)) == []
    updated = changed(generator, of_generator(model))
    trainable = {v.path for v in model.matching_variables}
    assert trainable <= set(updated)
    assert any("moving_mean" in path for path in updated)
    assert int(model.generator_steps) == 1

    generator = values(of_generator(model))
    model.discriminator_step(embeddings)
    assert changed(generator, of_generator(model)) == []
    updated = changed(discriminator, of_discriminator(model))
    assert {v.path for v in model.discriminator.variables} <= set(updated)
    assert int(model.discriminator_optimizer.iterations) == 1

    discriminator = values(of_discriminator(model))
    model.discriminator_step(embeddings, due=tf.constant(False))
    assert changed(discriminator, of_discriminator(model)) == []


def test_a_step_sees_the_features_of_its_own_forward_pass(build, pairs):
    model = compiled(build(), every=1)
    data = next(iter(batches(model, pairs)))
    twin = compiled(build(), every=1)
    twin.set_weights(model.get_weights())
    features = twin(data[0], training=True)
    expected = reference.modality_classification(
        *(np.array(x, np.float64) for x in twin.discriminate(features))
    )
    embeddings = model.generator_step(data)
    for name in ("image", "text"):
        np.testing.assert_allclose(embeddings[name], features[name], atol=1e-5)
    loss = model.discriminator_step(embeddings)
    assert float(loss) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("kwargs", [{}, {"steps_per_execution": 4}], ids=str)
def test_one_discriminator_update_in_k_across_epochs(build, pairs, kwargs):
    model = compiled(build(), every=3, **kwargs)
    counts = []

    class Watch(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            counts.append(
                (
                    int(model.generator_steps),
                    int(model.discriminator_optimizer.iterations),
                )
            )

    # Four batches to an epoch: k and the epochs never meet.
    model.fit(batches(model, pairs), epochs=4, verbose=0, callbacks=[Watch()])
    assert counts[-1] == (16, 5)
    assert all(done == steps // 3 for steps, done in counts)
    assert len(counts) == (4 if kwargs else 16)


def fitted(model, pairs, epochs, initial_epoch=0):
    return model.fit(
        batches(model, pairs, shuffle=True),
        epochs=epochs, initial_epoch=initial_epoch, verbose=0,
    ).history  # fmt: skip


@pytest.mark.parametrize("paradigm", ["unified", "separate"])
def test_going_on_from_a_file_is_going_on(build, pairs, tmp_path, paradigm):
    def make():
        model = build(paradigm=paradigm)
        weights = {"label_balance": 0.5, "negative_entropy": 0.7}
        return compiled(model, every=3, loss_weights=weights)

    unbroken = make()
    history = fitted(unbroken, pairs, 3)
    model = make()
    fitted(model, pairs, 1)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for ours, theirs in (
        (of_generator(loaded), of_generator(model)),
        (of_discriminator(loaded), of_discriminator(model)),
    ):
        assert len(ours) == len(theirs) > 0
        for one, other in zip(ours, theirs):
            np.testing.assert_array_equal(one, other)
    assert int(loaded.generator_steps) == 4  # and not a multiple of k
    assert loaded.discriminator_every == 3
    assert loaded.adversarial_weights == model.adversarial_weights
    assert loaded.loss_weights == [1.0, 0.5, 1.0, 1.0]
    classifier, balance = loaded.matching_losses[:2]
    assert balance.classifier is classifier

    resumed = fitted(loaded, pairs, 3, initial_epoch=1)
    assert set(resumed) == set(history)
    for name, means in resumed.items():
        np.testing.assert_allclose(means, history[name][1:], rtol=1e-4)
    for one, other in (
        (of_generator(loaded), of_generator(unbroken)),
        (of_discriminator(loaded), of_discriminator(unbroken)),
    ):
        for ours, theirs in zip(one, other, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_logs_hold_all_and_the_bar_is_short(build, pairs, capsys):
    model = compiled(build())
    history = model.fit(batches(model, pairs, captions_per_image=2)).history
    assert set(history) == {"loss", *TERMS, *WATCHED, *ANCHORS}
    shown = capsys.readouterr().out
    for name in ("loss", "discriminator_accuracy", "modality_entropy"):
        assert f" {name}: " in shown
    for name in {*TERMS, *ANCHORS, "negative_entropy"}:
        assert f" {name}: " not in shown
    terms = [history[name][0] for name in (*TERMS, "negative_entropy")]
    assert history["loss"][0] == pytest.approx(sum(terms), rel=1e-4)
    assert history["modality_entropy"][0] == pytest.approx(
        -history["negative_entropy"][0] / 2 / np.log(2), rel=1e-4
    )
    assert history["i2t_anchors"] == [32]


def test_terms_are_those_of_the_equations(build, pairs):
    model = compiled(build(), loss_weights={"cmpm": 0.5}, tau=2, margin=0.3)
    x, y = next(iter(batches(model, pairs)))
    embeddings = model(x, training=False)
    logs = model.test_on_batch(x, y, return_dict=True)
    arguments = [np.array(embeddings[k], np.float64) for k in embeddings]
    arguments += [y["image_label"].numpy(), y["text_label"].numpy()]
    weights = model.matching_losses[0].kernel.numpy()
    logits = [np.array(x, np.float64) for x in model.discriminate(embeddings)]
    for name, expected in {
        "label_balance": reference.label_balance(*arguments, weights, tau=2),
        "triplet": reference.triplet(*arguments, margin=0.3),
        "negative_entropy": reference.negative_entropy(*logits),
        "modality_classification": reference.modality_classification(*logits),
        "discriminator_accuracy": float(modality_accuracy(*logits)),
    }.items():
        assert logs[name] == pytest.approx(expected, rel=1e-3, abs=1e-6), name
    total = sum(logs[name] for name in (*TERMS, "negative_entropy"))
    assert logs["loss"] == pytest.approx(total - logs["cmpm"] / 2, rel=1e-4)


def test_terms_can_be_switched_off(build, pairs):
    off = {"label_balance": 0, "cmpm": 0, "modality_classification": 0}
    model = compiled(build(), every=1, loss_weights=off)
    before = values(of_discriminator(model))
    history = fitted(model, pairs, 1)
    assert set(history) == {"loss", "cmpc", "triplet", *WATCHED, *ANCHORS}
    assert changed(before, of_discriminator(model)) == []

    # Compiled again, the label classifier stays what it was.
    kernel = model.matching_losses[0].kernel
    compiled(model)
    assert model.matching_losses[1].classifier.kernel is kernel
    assert set(fitted(model, pairs, 1)) >= TERMS


def test_in_the_separate_paradigm_encoders_raise_the_classifiers_loss(
    build, pairs
):
    """Through the reversal, and by the factor that L_c has."""
    gradients = {}
    for reversal in (0.0, 1.0, 2.0):
        model = build(paradigm="separate", reversal=reversal)
        compiled(model, loss_weights={"modality_classification": 0.5})
        x, y = next(iter(batches(model, pairs)))
        embeddings = {k: tf.constant(v) for k, v in model(x).items()}
        with tf.GradientTape() as tape:
            tape.watch(embeddings)
            loss = model.measure(embeddings, y)
        gradients[reversal] = tape.gradient(loss, embeddings)["text"].numpy()
    with tf.GradientTape() as tape:
        tape.watch(embeddings)
        loss = kmatch.losses.modality_classification(
            *model.discriminate(embeddings)
        )
    direct = tape.gradient(loss, embeddings)["text"].numpy()
    for reversal in (1.0, 2.0):
        np.testing.assert_allclose(
            gradients[reversal] - gradients[0.0],
            -0.5 * reversal * direct,
            atol=1e-5,
        )


@pytest.mark.slow
def test_a_step_is_the_same_under_xla(build, pairs):
    # By plain gradient descent: Adam makes whole steps of gradients that are
    # 0 but for rounding, such as those of a bias before a batch norm.
    sgd = keras.optimizers.SGD
    models = []
    for jit_compile in (False, True):
        model = build()  # seeds what is drawn, in compile too
        models.append(model)
        model.compile(
            sgd(0.01), sgd(0.01), discriminator_every=2,
            image_tower_optimizer=sgd(0.01), jit_compile=jit_compile,
        )  # fmt: skip
        for data in batches(model, pairs):
            model.train_on_batch(*data)
        assert int(model.discriminator_optimizer.iterations) == 2
    for ours, theirs in zip(models[0].weights, models[1].weights):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_mixed_precision(build, pairs):
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model = compiled(build(), every=2)
        history = fitted(model, pairs, 2)
    finally:
        keras.config.set_dtype_policy("float32")
    assert np.isfinite(history["loss"]).all()
    scaled = keras.optimizers.LossScaleOptimizer
    assert isinstance(model.discriminator_optimizer, scaled)
    assert int(model.discriminator_optimizer.inner_optimizer.iterations) == 4


def test_the_export_holds_no_discriminator(build, tmp_path):
    model = build()
    version = kmatch.export(model, tmp_path / "export")
    towers = (
        model.image_tower, model.image_embedding,
        model.text_tower, model.text_embedding,
    )  # fmt: skip
    expected = sum(v.numpy().size for x in towers for v in x.variables)
    stored = tf.train.list_variables(version / "variables" / "variables")
    sizes = [int(np.prod(shape)) for name, shape in stored if "weights" in name]
    assert sum(sizes) == expected
    assert not any("discriminator" in name for name, _ in stored)


def test_bad_input(build):
    with pytest.raises(ValueError, match="paradigm must be one of"):
        build(paradigm="both")
    model = build()
    for every in (2.5, True, 0):
        with pytest.raises(ValueError, match="discriminator_every must be"):
            model.compile(discriminator_every=every)
    for weights, message in (
        ([1, 1, 1, 1], "dictionary by the terms' names"),
        ({"cmpm": float("nan")}, "Received: nan for 'cmpm'"),
        ({"negative_entropy": -1}, "Received: -1.0 for 'negative_entropy'"),
    ):
        with pytest.raises(ValueError, match=message):
            model.compile(loss_weights=weights)
    with pytest.raises(ValueError, match="must be an optimizer"):
        model.compile(discriminator_optimizer=None)
    with pytest.raises(ValueError, match="sizes of the hidden layers"):
        kmatch.AdversarialMatcher(
            model.image_tower, model.text_tower, discriminator_units=256
        )
    with pytest.raises(ValueError, match="names .'labelbalance'."):
        model.compile(loss_weights={"labelbalance": 0})
    with pytest.raises(ValueError, match="whole number from 1 on"):
        model.compile(discriminator_every=0)
    adam = keras.optimizers.Adam()
    with pytest.raises(ValueError, match="an optimizer of its own"):
        model.compile(adam, discriminator_optimizer=adam)
    with pytest.raises(ValueError, match="loss of kmatch.losses"):
        model.compile(loss="mse")
    model.num_classes = None
    with pytest.raises(ValueError, match="needs num_classes"):
        model.compile()
