import numpy as np
import pytest

import kmatch
from kmatch.retrieval import metrics, protocols
from tests.reference import retrieval as reference


def noisy(image_labels, text_labels, seed=0, dim=16):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=[max(image_labels) + 1, dim])
    return (
        centres[image_labels] + rng.normal(size=[len(image_labels), dim]),
        centres[text_labels] + rng.normal(size=[len(text_labels), dim]),
    )


@pytest.fixture
def small_folds(monkeypatch):
    monkeypatch.setattr(protocols, "FOLD", 20)


def test_1k_is_the_mean_over_consecutive_folds(small_folds):
    rng = np.random.default_rng(0)
    counts = rng.integers(5, 8, size=100)
    labels = np.arange(100) + 7, np.repeat(np.arange(100) + 7, counts)
    images, texts = noisy(*labels)
    report = kmatch.evaluate((images, texts), labels=labels, protocol="coco-1k")
    folds = []
    for start in range(0, 100, 20):
        own = (labels[1] >= 7 + start) & (labels[1] < 27 + start)
        rows = slice(start, start + 20)
        folds.append(
            metrics(images[rows], texts[own], labels[0][rows], labels[1][own])
        )
    expected = {n: np.mean([fold[n] for fold in folds]) for n in folds[0]}
    assert dict(report) == pytest.approx(expected)
    assert "5 folds" in str(report)
    low, high = report.intervals()["t2i_r1"]
    assert low < report["t2i_r1"] < high
    everything = kmatch.evaluate((images, texts), labels=labels)
    assert everything["t2i_r1"] < report["t2i_r1"]
    # Five galleries of 20 are surer than one of them.
    one = kmatch.evaluate(
        (images[:20], texts[labels[1] < 27]),
        labels=(labels[0][:20], labels[1][labels[1] < 27]),
    ).intervals()["t2i_r1"]
    assert high - low < (one.high - one.low) / 1.5


def test_1k_needs_whole_folds(small_folds):
    labels = (np.arange(30),) * 2
    with pytest.raises(ValueError, match="folds of 20 images, .* are 30"):
        kmatch.evaluate(noisy(*labels), labels=labels, protocol="coco-1k")
    shared = (np.arange(40) % 30,) * 2
    with pytest.raises(ValueError, match="a label of its own"):
        kmatch.evaluate(noisy(*shared), labels=shared, protocol="coco-1k")


def test_1k_says_what_is_wrong_where_the_caller_knows_it(small_folds, caplog):
    labels = (np.arange(40),) * 2
    images, texts = noisy(*labels)

    def evaluate(texts, text_labels):
        return kmatch.evaluate(
            (images, texts), labels=(labels[0], text_labels), protocol="coco-1k"
        )

    lost = np.where(np.arange(40) % 20 < 2, -1, labels[1])
    evaluate(texts, lost)
    assert "without 4 of 40 texts: no image" in caplog.text
    with pytest.raises(ValueError, match="Images 20 to 39, .* have no texts"):
        evaluate(texts[:20], labels[1][:20])
    texts[35] = np.nan
    with pytest.raises(ValueError, match="1 of 40 rows, first in row 35"):
        evaluate(texts, labels[1])


def test_5k_is_all_of_them(small_folds):
    labels = (np.arange(100),) * 2
    pair = noisy(*labels)
    report = kmatch.evaluate(pair, labels=labels, protocol="coco-5k")
    assert dict(report) == metrics(*pair, *labels)
    fewer = (np.arange(40),) * 2
    with pytest.raises(ValueError, match="takes 100 images, .* are 40"):
        kmatch.evaluate(noisy(*fewer), labels=fewer, protocol="coco-5k")


def test_identity_shows_person_search():
    labels = np.arange(30) // 3, np.arange(60) // 6
    pair = noisy(*labels)
    report = kmatch.evaluate(pair, labels=labels, protocol="identity")
    assert dict(report) == metrics(*pair, *labels)
    head = str(report).splitlines()[0]
    assert "Text-to-Image" in head and "Image-to-Text" not in head


def test_class_searches_with_the_mean_of_a_class():
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 5, rng.integers(5, size=70)
    images, texts = noisy(*labels)
    report = kmatch.evaluate(
        (images, texts), labels=labels, protocol="class", ks=(1, 2)
    )
    means, classes = reference.class_means(texts, labels[1])
    nearest = [
        max(range(5), key=lambda c: reference.cosine(image, means[c]))
        for image in images
    ]
    accuracy = np.mean([classes[c] for c in nearest] == labels[0])
    assert report["i2t_r1"] == pytest.approx(accuracy)
    everything = metrics(images, texts, *labels)
    assert report["t2i_ap50"] == pytest.approx(everything["t2i_ap50"])
    titles = str(report).splitlines()[1].split()
    assert titles == ["R@1", "R@2", "AP@50"]


@pytest.mark.parametrize("protocol", ["identity", "class"])
def test_labels_must_be_shared(protocol):
    labels = (np.arange(8),) * 2
    with pytest.raises(ValueError, match="no two of 8 images share one"):
        kmatch.evaluate(noisy(*labels), labels=labels, protocol=protocol)


def test_an_unknown_protocol_is_named():
    with pytest.raises(ValueError, match="no protocol '1k'.*coco-1k"):
        kmatch.evaluate((np.eye(2),) * 2, labels=([0, 1],) * 2, protocol="1k")


def test_legacy_map_is_asked_for():
    labels = (np.arange(8),) * 2
    pair = noisy(*labels)
    report = kmatch.evaluate(pair, labels=labels, legacy_map=True)
    assert report["t2i_legacy_map"] <= report["t2i_map"]
    assert "t2i_legacy_map" in report.intervals()
