import re
from pathlib import Path

import pytest

import kmatch

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.slow
def test_user_code_runs_as_written(
    scenes, unseen, tmp_path, monkeypatch, capsys
):
    [code] = re.findall(
        r"## In your own code\n\n```python\n(.*?)```", README.read_text(), re.S
    )
    # Word for word, but small: no network, few scenes, one epoch.
    for written, small in (
        ('image_size=224, weights="imagenet"', "image_size=64, weights=None"),
        ("epochs=30", "epochs=1"),
    ):
        assert written in code
        code = code.replace(written, small)
    splits = kmatch.data.Splits(scenes, unseen, unseen)
    monkeypatch.setattr(kmatch.data, "load", {"shapes": splits}.__getitem__)
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert "64 images, 320 captions" in capsys.readouterr().out
    exported = tmp_path / "saved_models" / "flickr30k_mobilenet" / "1"
    assert (exported / "saved_model.pb").exists()
