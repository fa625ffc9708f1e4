import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import kmatch


def batch(model, split, **kwargs):
    return next(iter(model.batches(split, batch_size=16, **kwargs)))


def test_embeddings_of_a_rectangular_batch(build, scenes):
    model = build()
    x, _ = batch(model, scenes, captions_per_image=3)
    embeddings = model(x)
    assert embeddings["image"].shape == (16, 32)
    assert embeddings["text"].shape == (len(x["tokens"]), 32)
    assert len(x["tokens"]) > 16


def test_features_in_place_of_images(build, scenes):
    model = build()
    x, _ = batch(model, scenes)
    features = model.image_tower(x["image"])
    by_features = model({"image_features": features, "tokens": x["tokens"]})
    np.testing.assert_allclose(
        by_features["image"], model(x)["image"], atol=1e-6
    )


def test_joint_embedding_is_dense_without_bias_and_batch_norm(build):
    dense, norm = build().image_embedding.layers
    assert not dense.use_bias
    assert norm.center and norm.scale and norm.momentum == 0.9


def test_encodings_do_not_depend_on_their_batch(trained, scenes):
    text, others = scenes.captions[0], scenes.captions[1:40]
    long = " ".join(scenes.captions[:8])
    alone = trained.encode_texts([text])[0]
    together = trained.encode_texts([*others, long, text])[-1]
    np.testing.assert_allclose(alone, together, atol=1e-5)
    images = trained.encode_images(scenes.images[:40])
    one = trained.encode_images(scenes.images[7:8])[0]
    np.testing.assert_allclose(one, images[7], atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(images, axis=1), 1, atol=1e-5)


def test_encode_images_takes_paths_bytes_and_arrays(trained, scenes, tmp_path):
    arrays = scenes.images[:3]
    files = [tf.io.encode_png(image).numpy() for image in arrays]
    paths = [tmp_path / f"{i}.png" for i in range(3)]
    for path, file in zip(paths, files):
        path.write_bytes(file)
    expected = trained.encode_images(arrays)
    tensors = tf.constant(arrays), list(tf.constant(arrays))
    strings = [str(path) for path in paths]
    for images in (list(arrays), *tensors, files, paths, strings):
        np.testing.assert_allclose(
            trained.encode_images(images), expected, atol=1e-6
        )


def test_encode_images_names_all_that_cannot_be_read(trained, tmp_path):
    paths = [tmp_path / f"{i}.png" for i in range(5)]
    for path in paths:
        path.write_bytes(tf.io.encode_png(np.zeros([4, 4, 3], "u1")).numpy())
    paths[1].write_bytes(b"text")
    paths[4].write_bytes(b"")
    with pytest.raises(ValueError, match="2 of 5 images") as info:
        trained.encode_images(paths)
    assert "1.png" in str(info.value) and "4.png" in str(info.value)


def test_a_process_may_build_many_models(build, scenes, caplog):
    for seed in range(6):
        model = build(seed)
        model.encode_images(scenes.images[: seed + 1])
        model.encode_texts(scenes.captions[: seed + 1])
    assert caplog.messages == []


@pytest.mark.parametrize("kind", ["images", "texts"])
def test_encoding_nothing_and_one_string(trained, kind):
    encode = getattr(trained, f"encode_{kind}")
    assert encode([]).shape == (0, 32)
    with pytest.raises(ValueError, match="into a list"):
        encode("one")


def test_encode_texts_takes_half_an_emoji_and_names_what_is_no_text(trained):
    half, stripped = trained.encode_texts(["a \ud83d circle", "a circle"])
    np.testing.assert_allclose(half, stripped, atol=1e-6)
    with pytest.raises(ValueError, match="Text 1 is not a string. .* None"):
        trained.encode_texts(["a", None])


def test_each_loss_is_logged_beside_the_weighted_total(build, scenes, losses):
    model = build()
    model.compile(loss=losses(), loss_weights=np.array([1.0, 0.5]))
    logs = model.evaluate(
        model.batches(scenes, 32), return_dict=True, verbose=0
    )
    assert set(logs) == {"loss", "cmpm", "cmpc"}
    assert logs["loss"] == pytest.approx(
        logs["cmpm"] + 0.5 * logs["cmpc"], rel=1e-5
    )


def test_losses_are_those_of_the_functions(build, scenes, losses):
    model = build()
    cmpm, cmpc = losses()
    model.compile(loss=[cmpm, cmpc])
    x, y = batch(model, scenes)
    embeddings = model(x, training=False)
    arguments = (
        embeddings["image"], embeddings["text"],
        y["image_label"], y["text_label"],
    )  # fmt: skip
    logs = model.test_on_batch(x, y, return_dict=True)
    assert logs["cmpm"] == pytest.approx(
        float(kmatch.losses.cmpm(*arguments)), rel=1e-5
    )
    assert logs["cmpc"] == pytest.approx(
        float(kmatch.losses.cmpc(*arguments, cmpc.kernel)), rel=1e-5
    )


def test_classes_that_no_label_has_are_not_logged(
    build, scenes, unseen, losses, capsys
):
    model = build()
    model.compile(loss=losses())
    history = model.fit(
        model.batches(scenes, 32),
        validation_data=model.batches(unseen, 32),
        verbose=2,
    ).history
    assert "cmpc" in history and "val_cmpm" in history
    assert "val_cmpc" not in history
    assert history["val_loss"] == history["val_cmpm"]
    shown = capsys.readouterr().out
    assert " cmpc: " in shown and "val_cmpc: " not in shown
    model.evaluate(model.batches(unseen, 32))
    assert "cmpc" not in capsys.readouterr().out


def test_regularization_is_part_of_the_total(build, scenes, losses):
    model = build(kernel_regularizer=keras.regularizers.L2(1e-2))
    model.compile(loss=losses()[:1])
    logs = model.evaluate(
        model.batches(scenes, 32), return_dict=True, verbose=0
    )
    penalty = sum(
        1e-2 * np.square(layer.layers[0].kernel.numpy()).sum()
        for layer in (model.image_embedding, model.text_embedding)
    )
    assert logs["loss"] - logs["cmpm"] == pytest.approx(penalty, rel=1e-3)


def test_the_image_tower_has_its_own_rate(build, scenes, losses):
    model = build()
    model.compile(
        keras.optimizers.Adam(1e-2),
        loss=losses(),
        image_tower_optimizer=keras.optimizers.Adam(1e-4),
    )
    before = [v.numpy() for v in model.trainable_variables]
    model.train_on_batch(*batch(model, scenes))
    tower = {id(v) for v in model.image_tower.trainable_variables}
    for variable, old in zip(model.trainable_variables, before):
        # Adam's first step is the rate, in the direction of the gradient.
        step = np.abs(variable.numpy() - old).max()
        rate = 1e-4 if id(variable) in tower else 1e-2
        assert step == pytest.approx(rate, rel=0.05), variable.path


def test_a_frozen_image_tower_stays_as_it_is(build, scenes, losses):
    model = build(freeze_image_tower=True)
    model.compile(
        keras.optimizers.Adam(1e-2),
        loss=losses(),
        image_tower_optimizer=keras.optimizers.Adam(1e-4),
    )
    before = model.image_tower.get_weights()
    model.fit(model.batches(scenes, 32), verbose=0)
    for old, new in zip(before, model.image_tower.get_weights()):
        np.testing.assert_array_equal(old, new)
    model.freeze_image_tower = False
    model.compile(keras.optimizers.Adam(1e-2), loss=losses())
    model.fit(model.batches(scenes, 32), verbose=0)
    after = model.image_tower.get_weights()
    assert any((old != new).any() for old, new in zip(before, after))


def test_compiling_again_keeps_a_loss_and_drops_another(build, scenes):
    model = build()
    cmpc = kmatch.losses.CMPC(num_classes=96)
    model.compile(loss=cmpc)
    model.fit(model.batches(scenes, 32), verbose=0)
    kernel = cmpc.kernel.numpy()
    model.compile(loss=[kmatch.losses.CMPM(), cmpc])
    np.testing.assert_array_equal(cmpc.kernel, kernel)
    assert any(v is cmpc.kernel for v in model.trainable_variables)
    model.compile(loss=kmatch.losses.CMPM())
    assert not any(v is cmpc.kernel for v in model.trainable_variables)


def test_two_losses_of_a_kind_have_two_names(build, scenes):
    model = build()
    model.compile(loss=[kmatch.losses.CMPM(), kmatch.losses.CMPM(reverse=True)])
    logs = model.evaluate(model.batches(scenes, 32), return_dict=True)
    assert set(logs) == {"loss", "cmpm", "cmpm_2"}


@pytest.mark.parametrize(
    "compiled", [{"steps_per_execution": 3}, {"run_eagerly": True}]
)
def test_ways_of_running_give_the_same_losses(build, scenes, losses, compiled):
    histories = []
    for kwargs in ({}, compiled):
        model = build()
        model.compile(keras.optimizers.SGD(1e-3), loss=losses(), **kwargs)
        history = model.fit(
            model.batches(scenes, 32, 5, shuffle=True), epochs=2, verbose=0
        )
        histories.append(history.history["loss"])
    np.testing.assert_allclose(*histories, rtol=1e-3)


@pytest.mark.slow
def test_a_step_compiles_with_xla(build, scenes, losses):
    results = []
    for jit_compile in (False, True):
        model = build()
        model.compile(
            keras.optimizers.SGD(1e-3), loss=losses(), jit_compile=jit_compile
        )
        x, y = batch(model, scenes, captions_per_image=2)
        # Without dropout, whose numbers XLA draws in another way.
        results.append(model.test_on_batch(x, y))
        assert np.isfinite(model.train_on_batch(x, y)).all()
    np.testing.assert_allclose(*results, rtol=1e-3)


def test_mixed_precision(build, scenes, losses):
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model = build()
        model.compile(
            keras.optimizers.Adam(1e-3),
            loss=losses(),
            image_tower_optimizer=keras.optimizers.Adam(1e-3),
        )
        history = model.fit(
            model.batches(scenes, 32, 5, shuffle=True), epochs=4, verbose=0
        ).history
    finally:
        keras.config.set_dtype_policy("float32")
    assert np.isfinite(history["loss"]).all()
    assert history["loss"][-1] < history["loss"][0]
    optimizers = model.optimizer, model.image_tower_optimizer
    for optimizer in optimizers:
        assert isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
    assert model.encode_texts(["a big red circle"]).dtype == np.float32


@pytest.mark.parametrize("second", [False, True])
def test_averaged_weights(build, scenes, losses, second):
    def adam():
        return keras.optimizers.Adam(1e-3, use_ema=True, ema_momentum=0.5)

    model = build()
    model.compile(
        adam(), loss=losses(), image_tower_optimizer=adam() if second else None
    )
    model.fit(model.batches(scenes, 32), epochs=1, verbose=0)
    pairs = [(model.optimizer, model.trainable_variables)]
    if second:
        tower = model.image_tower.trainable_variables
        ids = {id(v) for v in tower}
        rest = [v for v in model.trainable_variables if id(v) not in ids]
        pairs = [
            (model.optimizer, rest),
            (model.image_tower_optimizer, tower),
        ]
    for optimizer, variables in pairs:
        averages = optimizer._model_variables_moving_average
        for variable, average in zip(variables, averages, strict=True):
            np.testing.assert_array_equal(variable, average)


def test_fit_is_quiet_about_what_nobody_can_act_on(
    build, scenes, losses, recwarn
):
    model = build()
    model.compile(loss=losses())
    model.fit(model.batches(scenes, 32, shuffle=True), epochs=2, verbose=0)
    assert [str(warning.message) for warning in recwarn] == []


CONTINUE = """
import sys
import keras
import numpy as np
import kmatch
from tests.conftest import take

scenes = take(kmatch.data.load("shapes").train, 96)
model = keras.models.load_model(sys.argv[1])
history = model.fit(
    model.batches(scenes, 32, 2, shuffle=True, augment="flip"),
    initial_epoch=2, epochs=4, verbose=0,
)
np.save(sys.argv[2], [history.history[key] for key in ("cmpm", "cmpc")])
"""


@pytest.mark.slow
def test_training_goes_on_in_a_new_process(build, scenes, losses, tmp_path):
    def make():
        model = build()
        model.compile(
            keras.optimizers.Adam(1e-3),
            loss=losses(),
            image_tower_optimizer=keras.optimizers.Adam(1e-4),
        )
        return model

    def fit(model, epochs):
        return model.fit(
            model.batches(scenes, 32, 2, shuffle=True, augment="flip"),
            epochs=epochs,
            verbose=0,
        ).history

    unbroken = fit(make(), 4)
    model = make()
    fit(model, 2)
    model.save(tmp_path / "model.keras")
    subprocess.run(
        [
            sys.executable, "-c", CONTINUE,
            tmp_path / "model.keras", tmp_path / "losses.npy",
        ],
        check=True,
    )  # fmt: skip
    cmpm, cmpc = np.load(tmp_path / "losses.npy")
    np.testing.assert_allclose(cmpm, unbroken["cmpm"][2:], rtol=1e-4)
    np.testing.assert_allclose(cmpc, unbroken["cmpc"][2:], rtol=1e-4)


def test_a_loaded_model_is_the_same(build, scenes, losses, tmp_path):
    model = build(freeze_image_tower=False)
    model.compile(
        keras.optimizers.Adam(1e-3),
        loss=losses(),
        loss_weights=[1.0, 0.25],
        image_tower_optimizer=keras.optimizers.SGD(1e-4, momentum=0.9),
    )
    model.fit(model.batches(scenes, 32), verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.epochs_trained == 1
    assert loaded.loss_weights == [1.0, 0.25]
    for ours, theirs in (
        (loaded.weights, model.weights),
        (loaded.optimizer.variables, model.optimizer.variables),
        (
            loaded.image_tower_optimizer.variables,
            model.image_tower_optimizer.variables,
        ),
        (loaded.matching_losses[1].weights, model.matching_losses[1].weights),
    ):
        assert len(ours) == len(theirs) > 0
        for one, other in zip(ours, theirs):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(
        loaded.encode_texts(["a red circle"]),
        model.encode_texts(["a red circle"]),
    )


def test_files_of_a_later_version_are_refused(build):
    config = build().get_config()
    assert config["format_version"] == 1
    config["format_version"] = 99
    with pytest.raises(ValueError, match="format version 99"):
        kmatch.Matcher.from_config(config)


def test_bad_input(build, tokenizer):
    with pytest.raises(ValueError, match="image_tower must be"):
        kmatch.Matcher(
            keras.Sequential(), kmatch.towers.bilstm(tokenizer, units=4)
        )
    model = build()
    with pytest.raises(ValueError, match="loss of kmatch.losses"):
        model.compile(loss="mse")
    with pytest.raises(ValueError, match="1 losses and 2 factors"):
        model.compile(loss=kmatch.losses.CMPM(), loss_weights=[1, 2])


def test_a_pipeline_of_ones_own(build, losses):
    x = {
        "image": np.zeros([4, 32, 32, 3], "uint8"),
        "tokens": np.ones([4, 3], "int32"),
    }
    y = {"image_label": np.arange(4), "text_label": np.arange(4)}
    dataset = tf.data.Dataset.from_tensors((x, y))
    model = build()
    model.compile(loss=losses())
    assert np.isfinite(model.fit(dataset, verbose=0).history["loss"]).all()
