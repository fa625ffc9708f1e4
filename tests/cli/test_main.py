import zipfile

import keras
import pytest

from kmatch.cli.main import main
from kmatch.report import page


def test_export_then_evaluate(trained, tmp_path, capsys):
    trained.save(tmp_path / "model.keras")
    model, directory = str(tmp_path / "model.keras"), str(tmp_path / "out")
    assert main(["export", model, directory]) == 0
    assert capsys.readouterr().out.strip() == f"{directory}/1"
    assert main(["evaluate", directory, "--split", "val"]) == 0
    exported = capsys.readouterr().out
    assert "500 images, 2500 captions" in exported
    history = tmp_path / "history.json"
    history.write_text('[{"loss": 2.0, "val_i2t_r1": 0.5}]')
    page = tmp_path / "page" / "index.html"
    arguments = ["evaluate", model, "--split", "val"]
    assert main([*arguments, "--report", str(page.parent)]) == 0
    shown = capsys.readouterr().out
    assert shown == f"{exported}Report: {page}\n"
    html = page.read_text()
    assert "model on shapes" in html and 'id="training"' in html
    assert main([*arguments, "--ks", "3"]) == 0
    assert "R@3" in capsys.readouterr().out
    assert main([*arguments, "--protocol", "coco-1k"]) == 1
    assert "folds of 1000 images" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["."], "'.' holds no exported model"),
        (["none.keras"], "There is no file 'none.keras'"),
        (["text.keras"], "no Keras model, or is damaged"),
        (["plain.keras"], "holds a Sequential. Pass a saved kmatch.Matcher"),
        (["version"], "describes an exported model, cannot be read (KeyError)"),
        (["zip.keras"], "no Keras model, or is damaged"),
        ([".", "--history", "none"], "pass --report too"),
        ([".", "--report", "text.keras/page"], "text.keras' is a file"),
        (["other"], "cannot be read (FileNotFoundError)"),
        ([".", "--ks", "1", "1"], "different whole numbers from 1"),
        ([".", "--report", "text.keras"], "text.keras' is a file"),
        ([".", "--report", "page", "--history", "none"], "There is no 'none'"),
        ([".", "--data", "coco", "--root", "none"], "none"),
    ],
)
def test_bad_input_ends_in_one_line(
    arguments, message, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.keras").write_text("no model")
    keras.Sequential([keras.Input([1]), keras.layers.Dense(1)]).save(
        "plain.keras"
    )
    zipfile.ZipFile("zip.keras", "w").close()
    (tmp_path / "version").mkdir()
    (tmp_path / "version" / "kmatch.json").write_text("{}")
    (tmp_path / "other" / "1").mkdir(parents=True)
    assert main(["evaluate", *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("kmatch: ") and error.count("\n") == 1
    assert message in error


def test_what_a_page_needs_is_asked_for_first(capsys, monkeypatch):
    monkeypatch.setattr(page.importlib.util, "find_spec", lambda name: None)
    assert main(["evaluate", "none", "--report", "page"]) == 1
    assert "pip install" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["evaluate"], ["fly"]])
def test_usage(arguments, capsys):
    with pytest.raises(SystemExit) as info:
        main(arguments)
    assert info.value.code == 2
    assert "usage: kmatch" in capsys.readouterr().err
