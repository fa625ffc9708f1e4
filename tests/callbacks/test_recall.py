import csv

import keras
import numpy as np
import pytest
import tensorflow as tf

import kmatch


def test_metrics_are_in_the_logs_for_other_callbacks(
    build, losses, scenes, unseen, tmp_path, capsys
):
    model = build()
    model.compile(loss=losses())
    history = model.fit(
        model.batches(scenes, 32),
        epochs=2,
        callbacks=[
            kmatch.callbacks.RecallAtK(unseen, ks=(1, 5)),
            keras.callbacks.CSVLogger(tmp_path / "log.csv"),
            keras.callbacks.ModelCheckpoint(
                tmp_path / "best.keras",
                monitor="val_rsum",
                mode="max",
                save_best_only=True,
            ),
            keras.callbacks.EarlyStopping("val_t2i_r1", mode="max"),
            keras.callbacks.TensorBoard(tmp_path / "board"),
        ],
    ).history
    names = {"val_i2t_r1", "val_i2t_r5", "val_t2i_map", "val_rsum"}
    assert names <= set(history)
    with open(tmp_path / "log.csv") as file:
        rows = list(csv.DictReader(file))
    assert names <= set(rows[0])
    assert (tmp_path / "best.keras").exists()
    assert list((tmp_path / "board").rglob("events*"))
    # The last epoch's figures are those of the model as it is now.
    report = kmatch.evaluate(model, unseen, ks=(1, 5))
    for name, value in report.items():
        np.testing.assert_allclose(history[f"val_{name}"][-1], value)
    shown = capsys.readouterr().out
    assert "val_i2t_r5" in shown and "val_t2i_map" not in shown


def test_training_is_the_same_with_and_without(build, losses, scenes, unseen):
    histories = []
    for callbacks in ([], [kmatch.callbacks.RecallAtK(unseen)]):
        model = build()
        model.compile(loss=losses())
        history = model.fit(
            model.batches(scenes, 32, shuffle=True, augment="flip"),
            epochs=3,
            callbacks=callbacks,
            verbose=0,
        )
        histories.append(history.history["loss"])
    # Two runs of TensorFlow on several threads differ in the last bits.
    np.testing.assert_allclose(*histories, rtol=1e-6)


def test_each_image_is_encoded_once(trained, scenes, monkeypatch):
    seen = []
    encode = trained._embed_images

    def count(images):
        seen.append(len(images))
        return encode(images)

    monkeypatch.setattr(trained, "_embed_images", count)
    callback = kmatch.callbacks.RecallAtK(scenes)
    callback.set_model(trained)
    logs = {}
    callback.on_epoch_end(0, logs)
    assert sum(seen) == len(scenes.images)
    assert logs["val_i2t_r1"] > 0.8


def test_figures_and_a_gallery_for_tensorboard(trained, scenes, tmp_path):
    callback = kmatch.callbacks.RecallAtK(scenes, log_dir=tmp_path)
    callback.set_model(trained)
    logs = {}
    for epoch in range(2):
        callback.on_epoch_end(epoch, logs)
    callback.on_train_end()
    (file,) = tmp_path.glob("events*")
    scalars, galleries = {}, {}
    for event in tf.compat.v1.train.summary_iterator(str(file)):
        for value in event.summary.value:
            if value.metadata.plugin_data.plugin_name == "scalars":
                figure = float(tf.make_ndarray(value.tensor))
                scalars[value.tag, event.step] = figure
            elif value.metadata.plugin_data.plugin_name == "images":
                galleries[value.tag] = value
    assert scalars["val_t2i_r1", 1] == pytest.approx(logs["val_t2i_r1"])
    assert {name for name, _ in scalars} == set(logs)
    found = [n for n in galleries if n.startswith("gallery Text-to-Image/")]
    assert any("found at once" in name for name in found)
    value = galleries[found[0]]
    strip = tf.io.decode_png(value.tensor.string_val[2])
    assert strip.shape[1] == 5 * strip.shape[0]
    assert value.metadata.summary_description in scenes.captions
    own = [n for n in galleries if n.startswith("gallery Image-to-Text/")]
    assert "✓" in galleries[own[-1]].metadata.summary_description


def test_bad_settings_are_refused_before_training(shapes, tmp_path):
    recall = kmatch.callbacks.RecallAtK
    for ks in (0,), 5, None, ():
        with pytest.raises(ValueError, match="different whole numbers"):
            recall(shapes.val, ks=ks)
    for split in None, shapes:
        with pytest.raises(ValueError, match="such as data.test"):
            recall(split)
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="is a file"):
        recall(shapes.val, log_dir=tmp_path / "file")
