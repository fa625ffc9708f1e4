"""What all recipes have in common."""

import dataclasses
import runpy
from pathlib import Path

import pytest

import kmatch
from kmatch import recipe

RECIPES = sorted(Path(__file__).parents[2].glob("recipes/*.py"))


def run(path, *arguments, monkeypatch):
    monkeypatch.setattr("sys.argv", [str(path), *map(str, arguments)])
    runpy.run_path(str(path), run_name="__main__")


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_usage(path, monkeypatch, capsys):
    with pytest.raises(SystemExit) as info:
        run(path, "--help", monkeypatch=monkeypatch)
    assert info.value.code == 0
    shown = capsys.readouterr().out
    for option in (
        "--data-dir", "--epochs", "--batch-size", "--image-weights",
        "--output", "--seed", "--resume",
    ):  # fmt: skip
        assert option in shown
    assert f"saved_models/{path.stem}" in shown


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_settings_and_the_papers_row(path, monkeypatch):
    calls = []
    monkeypatch.setattr(
        recipe, "run", lambda *args, **kwargs: calls.append((args, kwargs))
    )
    run(path, monkeypatch=monkeypatch)
    [((name, description, settings, *paper), options)] = calls
    assert name == path.stem
    assert settings.data in kmatch.data.NAMES and settings.data in name
    assert settings.losses(num_labels=7)
    tables = [*paper, *options.get("protocols", {}).values()]
    for row in [row for table in tables for row in table.values()]:
        for figure in row.values():
            digits = 2 if "cuhk" in name else 1
            assert f"{figure * 100:.{digits}f}" in description


def test_two_stages_on_embedded_data(
    scenes, unseen, small_tower, monkeypatch, tmp_path, capsys
):
    """From the command line to the exported model, on a tiny stand-in."""
    small = dataclasses.replace(
        recipe.SHAPES, image_tower=small_tower, batch_size=96, units=8,
    )  # fmt: skip
    monkeypatch.setattr(recipe, "SHAPES", small)
    splits = kmatch.data.Splits(scenes, unseen, unseen)
    monkeypatch.setattr(kmatch.data, "load", lambda name: splits)
    path = next(p for p in RECIPES if p.stem == "coco_resnet152")
    arguments = ["--epochs", 2, "--output", tmp_path]
    run(path, *arguments, monkeypatch=monkeypatch)
    shown = capsys.readouterr().out
    assert "pass --data-dir with dataset_coco.json" in shown.splitlines()[0]
    assert "Epoch 1/1" in shown and "Epoch 2/2" in shown
    assert "cmpm:" in shown and "cmpc:" not in shown
    assert "64 images, 320 captions" in shown
    assert "31.1  60.7  73.9" in shown
    assert (tmp_path / "1" / "saved_model.pb").exists()
