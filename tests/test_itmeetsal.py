import dataclasses
import json
import sys
from pathlib import Path
from runpy import run_path

import pytest

import kmatch
from kmatch import itmeetsal, recipe

RECIPES = Path(__file__).parents[1] / "recipes"
RATES = {"optimizer": 2e-4, "discriminator_optimizer": 2e-4}


@pytest.fixture
def embedded(monkeypatch, scenes, unseen, small_tower):
    """Embedded data and models made small."""
    splits = kmatch.data.Splits(scenes, unseen, unseen)
    monkeypatch.setattr(recipe.data, "load", lambda name: splits)
    small = dataclasses.replace(
        recipe.SHAPES,
        image_tower=small_tower,
        units=8,
        word_embedding=8,
        embedding_dim=16,
    )
    monkeypatch.setattr(recipe, "SHAPES", small)


def ablate(monkeypatch, *arguments, rows=None):
    monkeypatch.setattr(sys, "argv", ["ablation", *map(str, arguments)])
    rows = rows or {
        "without": {"loss_weights": {"negative_entropy": 0, "cmpm": 0}},
        "with": {"paradigm": "separate", "tau": 2.0},
    }
    paper = {"without": {"i2t_r1": 0.406}, "with": {"i2t_r1": 0.466}}
    itmeetsal.ablate("test", "An ablation.", rows, paper)


def test_an_ablation_prints_both_tables_and_loses_nothing(
    embedded, monkeypatch, tmp_path, capsys
):
    arguments = ["--output", tmp_path, "--epochs", 1, "--freeze"]
    ablate(monkeypatch, *arguments, "--seeds", 1)
    first = (tmp_path / "runs" / "0-0.json").read_text()
    ablate(monkeypatch, *arguments, "--seeds", 2)
    shown = capsys.readouterr().out
    assert "embedded data set 'shapes'" in shown
    # Runs that were done were not done again.
    assert shown.count("without, seed 0:") == 1
    assert (tmp_path / "runs" / "0-0.json").read_text() == first
    table = shown.split("with, seed 1:")[1]
    lines = [line.split() for line in table.splitlines()]
    assert ["without", "paper", "40.6"] in lines
    assert ["with", "paper", "46.6"] in lines
    (here, _) = [line for line in lines if line[:1] == ["here"]]
    assert len(here) == 7 and all("±" in cell for cell in here[1:])
    assert "of 2 seeds" in table
    with pytest.raises(SystemExit, match="runs of other settings"):
        ablate(monkeypatch, "--output", tmp_path, "--epochs", 2, "--freeze")
    saved = json.loads((tmp_path / "table.json").read_text())
    for row, runs in saved["rows"].items():
        assert [run["seed"] for run in runs] == [0, 1]
        for run in runs:
            assert 0 < run["metrics"]["i2t_map"] <= 1
            assert ("cmpm" in run["history"][0]) == (row == "with")


def test_another_backbone_has_no_alpha(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        ablate(monkeypatch, "--backbone", "vgg", "--alpha", 0.75)
    assert "is for --backbone mobilenet" in capsys.readouterr().err


@pytest.mark.parametrize("backbone", itmeetsal.BACKBONES)
def test_the_papers_settings(backbone):
    settings = itmeetsal.settings("flickr30k", backbone)
    assert settings.embedding_dim == settings.units == 512
    assert settings.dropout == 0.3
    # 64 pairs, with captions of the same image among them.
    assert settings.batch_size * settings.captions_per_image == 64
    tower = settings.image_tower.func
    assert tower is itmeetsal.BACKBONES[backbone]


def test_the_papers_rates(embedded, scenes, unseen):
    settings = itmeetsal.settings("flickr30k")
    splits = kmatch.data.Splits(scenes, unseen, unseen)
    small = dataclasses.replace(recipe.SHAPES, image_weights="imagenet")
    model = itmeetsal.build_matcher(small, splits, small.image_tower())
    assert model.num_classes == scenes.num_labels
    (stage,) = settings.stages
    itmeetsal.compile_matcher(model, small, stage, 10, scenes.num_labels)
    for name, rate in RATES.items():
        optimizer = getattr(model, name)
        assert float(optimizer.learning_rate) == pytest.approx(rate)
    assert model.discriminator_every == 5
    schedule = model.image_tower_optimizer._learning_rate
    rates = [float(schedule(step)) for step in (0, 19, 20, 40)]
    assert rates == pytest.approx([2e-5, 2e-5, 2e-5 * 0.94, 2e-5 * 0.94**2])


@pytest.mark.parametrize(
    "data", ["flickr8k", "flickr30k", "coco", "cuhk_pedes"]
)
def test_recipes_name_every_backbone(data):
    module = run_path(str(RECIPES / f"{data}_itmeetsal.py"), run_name="recipe")
    assert set(module["PAPER"]) == set(itmeetsal.BACKBONES)
    for row in module["PAPER"].values():
        assert row["i2t_r1" if data != "cuhk_pedes" else "t2i_r1"] > 0.2


@pytest.mark.parametrize("name", ["components", "temperature", "paradigms"])
def test_ablations_rows_are_the_papers(name):
    path = RECIPES / "ablations" / f"itmeetsal_{name}.py"
    module = run_path(str(path), run_name="recipe")
    tables = module["PAPER"]
    for paper in tables.values() if name == "paradigms" else [tables]:
        assert list(paper) == list(module["ROWS"])
    for options in module["ROWS"].values():
        assert set(options) <= {"loss_weights", "tau", "paradigm"}
        weights = options.get("loss_weights", {})
        assert set(weights) <= {"label_balance", "cmpm", "negative_entropy"}
