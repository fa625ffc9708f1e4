import keras
import numpy as np
import pytest

import kmatch


def watched(watch, model, looks):
    """Lets a watch look at a model as it is."""
    watch.set_model(model)
    for epoch in range(looks):
        watch.on_epoch_end(epoch)


def said(caplog):
    """What kmatch logged: TensorFlow minds many small trainings in a row."""
    return [own.getMessage() for own in caplog.records if own.name == "kmatch"]


def same_for_all(model, layer):
    """Makes the embeddings of a modality all alike."""
    dense = layer.layers[0]
    dense.kernel.assign(np.zeros(dense.kernel.shape))
    norm = layer.layers[1]
    norm.beta.assign(np.linspace(-1, 1, norm.beta.shape[0]))


@pytest.mark.parametrize("modality", ["image", "text"])
def test_alike_embeddings_are_warned_of_once(
    build, losses, scenes, caplog, modality
):
    model = build()
    model.compile(loss=losses())
    same_for_all(model, getattr(model, f"{modality}_embedding"))
    watch = kmatch.callbacks.CollapseWatch(scenes, num_pairs=16, warmup=0)
    watched(watch, model, looks=2)
    assert not said(caplog)
    watched(watch, model, looks=3)
    (message,) = said(caplog)
    assert f"The {modality} embeddings have become alike" in message
    assert "lower learning rate" in message


def test_a_loss_that_learns_nothing_is_warned_of(build, losses, scenes, caplog):
    model = build(batch_norm=False)
    model.compile(loss=losses()[0])
    for layer in model.image_embedding, model.text_embedding:
        kernel = layer.layers[0].kernel
        kernel.assign(1e-4 * kernel.numpy())
    # Short embeddings that differ: p is uniform all the same.
    watch = kmatch.callbacks.CollapseWatch(scenes, num_pairs=16, warmup=0)
    watched(watch, model, looks=3)
    (message,) = said(caplog)
    assert "'cmpm' sits at" in message and "say nothing" in message


def test_healthy_training_is_left_alone(build, losses, scenes, caplog):
    model = build()
    model.compile(keras.optimizers.Adam(5e-3), loss=losses())
    # A new model looks like a collapsed one for some steps.
    watch = kmatch.callbacks.CollapseWatch(scenes, num_pairs=32, warmup=20)
    batches = model.batches(scenes, 8, captions_per_image=5, shuffle=True)
    model.fit(batches, epochs=6, verbose=0, callbacks=[watch])
    assert not watch.warned and not said(caplog)


def test_a_trained_model_is_left_alone(trained, scenes, caplog):
    watch = kmatch.callbacks.CollapseWatch(scenes, warmup=0)
    watched(watch, trained, looks=5)
    assert not said(caplog)


def test_divergence_is_named(build, losses, scenes, caplog):
    model = build()
    model.compile(loss=losses())
    kernel = model.image_embedding.layers[0].kernel
    kernel.assign(np.full(kernel.shape, np.nan))
    watch = kmatch.callbacks.CollapseWatch(scenes, 8, warmup=0)
    watched(watch, model, looks=1)
    assert "image embeddings hold NaN" in caplog.text


def test_bad_settings(scenes):
    with pytest.raises(ValueError, match="num_pairs must be a whole number"):
        kmatch.callbacks.CollapseWatch(scenes, num_pairs=1)
    with pytest.raises(ValueError, match="patience must be a whole number"):
        kmatch.callbacks.CollapseWatch(scenes, patience=0)
    with pytest.raises(ValueError, match="in two images or more"):
        kmatch.callbacks.CollapseWatch(
            kmatch.data.from_pairs(scenes.images[:1], scenes.captions[:1])
        )
