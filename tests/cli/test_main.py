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
    assert main(["evaluate", model, "--split", "val"]) == 0
    assert capsys.readouterr().out == exported


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
