import argparse
import dataclasses
import json

import pytest

import kmatch
from kmatch import recipe
from kmatch.recipe import Stage


@pytest.fixture(scope="session")
def splits(scenes, unseen):
    return kmatch.data.Splits(scenes, unseen, unseen)


@pytest.fixture(scope="session")
def settings(small_tower):
    """A frozen stage and a whole one, as for ResNet-152, but small."""
    return recipe.Settings(
        data="shapes",
        image_tower=small_tower,
        losses=recipe.cmpm_cmpc,
        stages=[
            Stage(
                epochs=1,
                learning_rate=5e-3,
                freeze_image_tower=True,
                cache_features=True,
            ),
            Stage(epochs=2, learning_rate=recipe.piecewise(1e-3, {1: 1e-4})),
        ],
        batch_size=48,
        captions_per_image=5,
        augment=None,
        word_embedding=16,
        units=24,
        embedding_dim=32,
        batch_norm_momentum=0.9,
    )


def train(settings, splits, output, epochs=None, resume=False, compiled=None):
    def compile(model, settings, stage, steps, num_labels):
        recipe.compile_matcher(model, settings, stage, steps, num_labels)
        # Two steps take less time than tracing them.
        model.run_eagerly = True
        if compiled is not None:
            weights = image_weights(model)
            compiled.append((stage, steps, num_labels, model, weights))

    recipe.seed(0)
    args = argparse.Namespace(
        output=output,
        epochs=epochs,
        batch_size=None,
        image_weights=None,
        resume=resume,
    )
    return recipe.train(settings, splits, args, compile=compile)


def image_weights(model):
    return [variable.numpy() for variable in model.image_tower.variables]


def history(output):
    return json.loads((output / "checkpoint" / "history.json").read_text())


@pytest.mark.slow
def test_stages_and_resuming_in_any_of_them(settings, splits, tmp_path, capsys):
    compiled = []
    train(settings, splits, tmp_path / "unbroken", compiled=compiled)
    assert any((tmp_path / "unbroken" / "features").iterdir())
    expected = history(tmp_path / "unbroken")
    assert len(expected) == 3

    (*first, model, before), (*second, _, between) = compiled
    assert first == [settings.stages[0], 2, 96]
    assert second == [settings.stages[1], 2, 96]
    assert all((x == y).all() for x, y in zip(before, between))
    assert any((x != y).any() for x, y in zip(between, image_weights(model)))
    assert model.optimizer.iterations == 4  # of its own stage

    for epochs in (1, 2, None):
        train(settings, splits, tmp_path / "broken", epochs, resume=True)
    shown = capsys.readouterr().out
    assert "Nothing to resume" in shown
    assert "Resuming after epoch 1." in shown
    broken = history(tmp_path / "broken")
    assert len(broken) == 3
    for epoch, logs in zip(broken, expected):
        assert epoch == pytest.approx(logs, rel=1e-4)


def test_resumed_for_longer_the_rate_falls_more_slowly(
    settings, splits, tmp_path
):
    stage = Stage(epochs=4, learning_rate=recipe.cosine(1e-3))
    settings = dataclasses.replace(settings, stages=[stage])
    train(settings, splits, tmp_path, epochs=1)
    model = train(settings, splits, tmp_path, epochs=2, resume=True)
    assert model.epochs_trained == 2
    assert model.optimizer._learning_rate.decay_steps == 4


def test_no_epochs_are_a_usage_error(capsys):
    with pytest.raises(SystemExit):
        recipe.parser("A recipe.", "out").parse_args(["--epochs", "0"])
    assert "must be at least 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "epochs, expected",
    [(None, [15, 30]), (1, [1, 0]), (20, [15, 5]), (60, [15, 45])],
)
def test_epochs_are_those_of_all_stages(epochs, expected):
    stages = [Stage(epochs=15), Stage(epochs=30)]
    assert [stage.epochs for stage in recipe.cut(stages, epochs)] == expected


def test_the_stand_in_keeps_losses_and_the_frozen_stage(settings):
    stand_in = recipe.stand_in(
        dataclasses.replace(settings, losses=recipe.cmpm)
    )
    assert stand_in.losses is recipe.cmpm
    assert stand_in.image_tower is recipe.SHAPES.image_tower
    frozen = [stage.freeze_image_tower for stage in stand_in.stages]
    assert frozen == [True, False]
    one_stage = dataclasses.replace(settings, stages=settings.stages[1:])
    assert recipe.stand_in(one_stage).stages == recipe.SHAPES.stages


def test_without_network_random_weights_are_announced(capsys):
    def tower(weights):
        if weights == "imagenet":
            raise ConnectionError("Pass a file.")
        return weights

    assert recipe.pretrained(tower, "imagenet") == (None, None)
    shown = capsys.readouterr().out
    assert "THE IMAGE TOWER STARTS FROM RANDOM WEIGHTS. Pass a file." in shown
    assert recipe.pretrained(tower, "file.h5") == ("file.h5", "file.h5")
