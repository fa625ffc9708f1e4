import pytest

from kmatch.cli.main import main


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
    assert main([*arguments, "--protocol", "coco-1k"]) == 1
    assert "folds of 1000 images" in capsys.readouterr().err


def test_bad_input_ends_in_one_line(tmp_path, capsys):
    assert main(["evaluate", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("kmatch: ") and error.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["evaluate"], ["fly"]])
def test_usage(arguments, capsys):
    with pytest.raises(SystemExit) as info:
        main(arguments)
    assert info.value.code == 2
    assert "usage: kmatch" in capsys.readouterr().err
