import keras
import numpy as np
import pytest
import tensorflow as tf

import kmatch

PERFECT = np.eye(4), np.repeat(np.eye(4), 3, axis=0)
LABELS = np.arange(4), np.repeat(np.arange(4), 3)


def test_report_is_a_mapping_and_prints_as_a_table():
    report = kmatch.evaluate(PERFECT, labels=LABELS)
    assert report["i2t_r1"] == report["t2i_r10"] == 1.0
    assert report["rsum"] == 600
    assert dict(report)
    lines = str(report).splitlines()
    assert lines[0].split() == (
        "4 images, 12 captions Image-to-Text Text-to-Image".split()
    )
    assert lines[1].split() == ["R@1", "R@5", "R@10"] * 2
    assert lines[2].split() == ["kmatch"] + ["100.0"] * 6
    assert len({len(line) for line in lines}) == 1


def test_columns_stay_apart():
    lines = str(
        kmatch.evaluate(PERFECT, labels=LABELS, ks=(1, 1000, 25000))
    ).splitlines()
    assert lines[1].split() == ["R@1", "R@1000", "R@25000"] * 2


def test_rows_of_others_stand_beside():
    table = kmatch.evaluate(PERFECT, labels=LABELS).table(
        {"a paper": {"i2t_r1": 0.403, "t2i_r10": 0.685}}
    )
    row = table.splitlines()[-1].split()
    assert row == ["a", "paper", "40.3", "-", "-", "-", "-", "68.5"]


def test_a_trained_model_finds_what_it_has_seen(trained, scenes):
    report = kmatch.evaluate(trained, scenes)
    assert report["i2t_r1"] > 0.8 and report["t2i_r1"] > 0.8


def expected_at_chance(measured, chance, queries):
    return abs(measured - chance) < 3 * np.sqrt(chance / queries) + 1e-9


def test_blank_images_score_at_chance(trained, scenes):
    blank = kmatch.data.CaptionedImages(
        np.full_like(scenes.images, 128), scenes.captions, scenes.caption_image
    )
    report = kmatch.evaluate(trained, blank)
    count = len(scenes.images)
    assert expected_at_chance(report["t2i_r1"], 1 / count, 5 * count)
    assert expected_at_chance(report["i2t_r1"], 1 / count, count)


def test_shuffled_captions_score_at_chance(trained, scenes):
    rng = np.random.default_rng(0)
    shuffled = kmatch.data.CaptionedImages(
        scenes.images,
        [scenes.captions[i] for i in rng.permutation(len(scenes.captions))],
        scenes.caption_image,
    )
    report = kmatch.evaluate(trained, shuffled)
    count = len(scenes.images)
    assert expected_at_chance(report["t2i_r1"], 1 / count, 5 * count)
    # An image has five captions to hit.
    assert expected_at_chance(report["i2t_r1"], 1 / count, count)


@pytest.fixture
def broken(scenes, tmp_path):
    paths = []
    for i in range(12):
        path = tmp_path / f"{i}.png"
        path.write_bytes(tf.io.encode_png(scenes.images[i]).numpy())
        paths.append(str(path))
    (tmp_path / "3.png").write_bytes(b"text")
    rows = np.flatnonzero(scenes.caption_image < 12)
    return kmatch.data.CaptionedImages(
        paths,
        [scenes.captions[i] for i in rows],
        scenes.caption_image[rows],
    )


def test_unreadable_images_are_left_out_with_their_captions(
    trained, broken, scenes, caplog
):
    report = kmatch.evaluate(trained, broken)
    assert "without 1 of 12 images" in caplog.text
    assert "their 5 captions" in caplog.text and "3.png" in caplog.text
    assert (report.num_images, report.num_captions) == (11, 55)
    kept = [i for i in range(12) if i != 3]
    captions = [i for i in range(60) if i // 5 != 3]
    expected = kmatch.evaluate(
        (
            trained.encode_images(scenes.images[kept]),
            trained.encode_texts([scenes.captions[i] for i in captions]),
        ),
        labels=(kept, np.repeat(kept, 5)),
    )
    assert dict(report) == pytest.approx(dict(expected))


def test_bad_input(trained, scenes, broken):
    with pytest.raises(ValueError, match="Received neither"):
        kmatch.evaluate(PERFECT)
    with pytest.raises(ValueError, match="evaluated on a split"):
        kmatch.evaluate(trained)
    with pytest.raises(ValueError, match="such as data.test.*Splits"):
        kmatch.evaluate(trained, kmatch.data.Splits(scenes, scenes, scenes))
    with pytest.raises(ValueError, match="Received: Sequential"):
        kmatch.evaluate(keras.Sequential(), scenes)
    with pytest.raises(ValueError, match="embeddings are a pair.* tuple of 3"):
        kmatch.evaluate((*PERFECT, 1), labels=LABELS)
    for labels in LABELS[:1], 5, {"a": 1, "b": 2}:
        with pytest.raises(ValueError, match="labels are a pair"):
            kmatch.evaluate(PERFECT, labels=labels)
    for path in broken.images:
        with open(path, "wb") as file:
            file.write(b"text")
    with pytest.raises(ValueError, match="None of the 12 images"):
        kmatch.evaluate(trained, broken)
