"""What the recipes of Zhang & Lu have in common."""

import dataclasses
import runpy
from pathlib import Path

import pytest

import kmatch
from kmatch import recipe

FOLDER = Path(__file__).parents[2] / "recipes"
RECIPES = sorted(
    [*FOLDER.glob("*_mobilenet.py"), *FOLDER.glob("*_resnet152.py")]
)


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


@pytest.mark.slow
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
    arguments = ["--epochs", 2, "--output", tmp_path]
    run(FOLDER / "coco_resnet152.py", *arguments, monkeypatch=monkeypatch)
    shown = capsys.readouterr().out
    assert "pass --data-dir with dataset_coco.json" in shown.splitlines()[0]
    assert "Epoch 2/2" in shown
    frozen = next((tmp_path / "features").iterdir())
    assert any(frozen.iterdir())
    assert "cmpm:" in shown and "cmpc:" not in shown
    assert "64 images, 320 captions" in shown
    assert "31.1  60.7  73.9" in shown
    assert (tmp_path / "1" / "saved_model.pb").exists()


def test_further_protocols_on_the_real_data_set(
    scenes, unseen, monkeypatch, tmp_path, capsys
):
    """A recipe's way through, without training."""

    class Report:
        def __init__(self, protocol):
            self.protocol = protocol

        def table(self, rows):
            return f"table of {self.protocol} beside {len(rows)} row"

    splits = kmatch.data.Splits(scenes, unseen, unseen)
    loaded = []
    monkeypatch.setattr(
        kmatch.data, "load", lambda *args: loaded.append(args) or splits
    )
    monkeypatch.setattr(recipe, "train", lambda *_: "best")
    monkeypatch.setattr(recipe, "export", lambda *_: "folder")
    monkeypatch.setattr(
        recipe,
        "evaluate",
        lambda model, split, protocol="all": Report(protocol),
    )
    run(
        FOLDER / "coco_mobilenet.py", "--data-dir", tmp_path,
        monkeypatch=monkeypatch,
    )  # fmt: skip
    assert loaded == [("coco", str(tmp_path))]
    shown = capsys.readouterr().out
    assert "table of all beside 1 row" in shown
    assert "table of coco-1k beside 1 row" in shown
