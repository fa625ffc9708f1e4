import logging

import numpy as np
import pytest
import tensorflow as tf

from kmatch.retrieval import metrics, precision_recall, ranks
from kmatch.retrieval.measures import class_precision
from kmatch.retrieval.ranking import tie_order
from tests.reference import retrieval as reference

KEYS = [
    *("i2t_r1", "i2t_r5", "i2t_r10", "i2t_map", "i2t_medr", "i2t_meanr"),
    *("t2i_r1", "t2i_r5", "t2i_r10", "t2i_map", "t2i_medr", "t2i_meanr"),
    *("t2i_ap50", "rsum"),
]


def random(labels, rng):
    return rng.normal(size=[len(labels), 16])


def related(labels, rng):
    centres = np.random.default_rng(0).normal(size=[labels.max() + 1, 16])
    return centres[labels] + rng.normal(size=[len(labels), 16])


def tied(labels, rng):
    """Of norm 4, with exact cosines of which many are equal."""
    return rng.choice([-1.0, 1.0], size=[len(labels), 16])


def collapsed(labels, rng):
    return np.tile(tied(labels[:1], rng), [len(labels), 1])


def perfect(labels, rng):
    return np.eye(labels.max() + 1)[labels] * rng.uniform(1, 2)


def labels_of(num_labels, captions, images_per_label, rng):
    """Labels of images and of captions, with varying numbers of captions."""
    image_labels = np.repeat(np.arange(num_labels), images_per_label)
    counts = rng.integers(captions[0], captions[1] + 1, size=len(image_labels))
    return image_labels, rng.permutation(np.repeat(image_labels, counts))


@pytest.mark.parametrize("draw", [random, related, tied, collapsed, perfect])
@pytest.mark.parametrize("captions", [(1, 1), (5, 5), (1, 10)])
@pytest.mark.parametrize("images_per_label", [1, 4, 12])
def test_metrics_follow_their_definitions(draw, captions, images_per_label):
    rng = np.random.default_rng(1)
    labels = labels_of(24 // images_per_label, captions, images_per_label, rng)
    images, texts = draw(labels[0], rng), draw(labels[1], rng)
    measured = metrics(images, texts, *labels, ks=(1, 3, 10), legacy_map=True)
    expected = reference.metrics(
        images,
        texts,
        *labels,
        ks=(1, 3, 10),
        image_order=tie_order(len(images)),
        text_order=tie_order(len(texts)),
    )
    assert measured == pytest.approx(expected, abs=1e-9)


def test_keys_and_types():
    measured = metrics(np.eye(3), np.eye(3), [0, 1, 2], [0, 1, 2])
    assert list(measured) == KEYS
    assert {type(value) for value in measured.values()} == {float}


def test_a_perfect_embedding_scores_one():
    measured = metrics(np.eye(60), np.eye(60), np.arange(60), np.arange(60))
    assert measured.pop("rsum") == 600
    assert measured.pop("t2i_ap50") == pytest.approx(1 / 50)
    assert set(measured.values()) == {1.0}


@pytest.mark.parametrize("order", ["by label", "shuffled"])
@pytest.mark.parametrize("captions", [1, 5])
def test_a_constant_embedding_scores_at_chance(order, captions):
    rng = np.random.default_rng(0)
    image_labels = np.arange(400)
    text_labels = np.repeat(image_labels, captions)
    if order == "shuffled":
        image_labels = rng.permutation(image_labels)
        text_labels = rng.permutation(text_labels)
    images = np.tile(rng.normal(size=37), [len(image_labels), 1])
    texts = np.tile(rng.normal(size=37), [len(text_labels), 1])
    measured = metrics(images, texts, image_labels, text_labels)

    # What random rankings give, and how far the mean of 400 may stray from
    # that of 4,000 drawn here.
    for direction, relevant, size in (
        ("i2t", captions, len(texts)),
        ("t2i", 1, len(images)),
    ):
        draws = np.sort(
            [rng.permutation(size)[:relevant] + 1 for _ in range(4000)], axis=1
        )
        precisions = np.arange(1, relevant + 1) / draws
        chance = {
            "r1": draws[:, 0] <= 1,
            "r5": draws[:, 0] <= 5,
            "r10": draws[:, 0] <= 10,
            "meanr": draws[:, 0],
            "map": precisions.mean(axis=1),
        }
        for name, values in chance.items():
            sigma = np.std(values) * np.sqrt(1 / 400 + 1 / 4000)
            value = measured[f"{direction}_{name}"]
            assert abs(value - np.mean(values)) <= 3 * sigma, name


def test_ap50_with_every_caption_as_a_query():
    rng = np.random.default_rng(0)
    image_labels = np.repeat(np.arange(4), 20)
    text_labels = np.repeat(np.arange(4), [1, 2, 3, 9])
    images, texts = related(image_labels, rng), related(text_labels, rng)
    measured = metrics(
        images, texts, image_labels, text_labels, ap50_queries="caption"
    )
    found = reference.rankings(
        queries=texts,
        gallery=images,
        query_labels=text_labels,
        gallery_labels=image_labels,
        tie_order=tie_order(80),
    )
    shares = np.array([reference.precision_at(each, 50) for each in found])
    expected = np.mean([shares[text_labels == c].mean() for c in range(4)])
    assert measured["t2i_ap50"] == pytest.approx(expected)


def test_ap50_of_a_small_gallery_counts_all_of_it():
    found = ranks(np.eye(2), np.eye(2), [0, 1], [0, 1])
    np.testing.assert_array_equal(class_precision(found, [0, 1], k=50), 0.5)


@pytest.mark.parametrize("num_levels", [4, 11])
def test_precision_recall(num_levels):
    rng = np.random.default_rng(0)
    labels = rng.integers(8, size=40), rng.integers(8, size=90)
    embeddings = related(labels[0], rng), related(labels[1], rng)
    levels, precision = precision_recall(
        ranks(*embeddings, *labels), num_levels
    )
    relevant = reference.rankings(*embeddings, *labels, tie_order(90))
    np.testing.assert_allclose(levels, np.linspace(0, 1, num_levels))
    np.testing.assert_allclose(
        precision,
        [
            np.mean([reference.interpolated_precision(r, x) for r in relevant])
            for x in levels
        ],
    )


def test_one_image_and_one_caption():
    measured = metrics([[3.0, 4.0]], [[-1.0, 0.0]], ["a"], ["a"])
    assert measured.pop("rsum") == 600
    assert set(measured.values()) == {1.0}


def test_queries_without_a_counterpart_are_left_out_and_counted(caplog):
    images, texts = np.eye(4)[:3], np.eye(4)[[0, 1, 3, 3]]
    with caplog.at_level(logging.WARNING, "kmatch"):
        measured = metrics(images, texts, [0, 1, 2], [0, 1, 8, 9], ks=(1,))
    assert caplog.messages == [
        "Measured without 1 of 3 images: no text has their label.",
        "Measured without 2 of 4 texts: no image has their label.",
    ]
    assert measured["i2t_r1"] == measured["t2i_map"] == 1.0
    assert measured["rsum"] == 200


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "b", "c"],
        [-5, 2**63 + 1, 2**70],
        [2**60, 2**60 + 1, 2**60 + 2],
        np.array([2**63, 2**63 + 1, 2**63 + 2], np.uint64),
        [1.0, 2.0, 4.0],
        np.array(["a", "bb", "a b"], object),
        np.array(["a", "bb", "c"], np.dtypes.StringDType()),
        [b"a", b"bb", b"c"],
        tf.constant(["a", "bb", "c"]),
        [tf.constant(1), np.array(2), np.int8(3)],
        np.array([1, 2, 3], np.float16),
    ],
)
def test_labels_are_numbers_or_strings(labels):
    rng = np.random.default_rng(0)
    images, texts = related(np.arange(3), rng), related(np.arange(6) // 2, rng)
    same = [label for label in labels for _ in range(2)]
    measured = metrics(images, texts, labels, same, ks=(1, 2))
    assert measured == metrics(
        images, texts, [0, 1, 2], [0, 0, 1, 1, 2, 2], ks=(1, 2)
    )


def test_labels_of_unlike_integers_match_exactly():
    labels = np.arange(3) + 2**60
    measured = metrics(
        np.eye(3), np.eye(3)[[1, 2, 0]], labels.astype(np.uint64), labels
    )
    assert measured["i2t_r1"] == 0


GOOD = dict(
    image_embeddings=np.eye(3),
    text_embeddings=np.eye(3),
    image_labels=[0, 1, 2],
    text_labels=[0, 1, 2],
)


@pytest.mark.parametrize(
    "change, message",
    [
        (
            {"text_embeddings": np.diag([1, np.nan, np.inf])},
            "`text_embeddings` must be finite.* 2 of 3 rows, first in row 1",
        ),
        (
            {"image_embeddings": np.ones([3, 4])},
            "`image_embeddings` and `text_embeddings` .* 4 and 3",
        ),
        (
            {"image_embeddings": np.ones([0, 3]), "image_labels": []},
            r"`image_embeddings` .* one item. Received shape: \(0, 3\)",
        ),
        (
            {"text_embeddings": [], "text_labels": []},
            r"`text_embeddings` .* one item. Received shape: \(0,\)",
        ),
        (
            {"text_labels": [0, 1]},
            r"`text_labels` .* each of 3 embeddings. Received shape: \(2,\)",
        ),
        (
            {"image_labels": [[0], [1], [2]]},
            r"`image_labels` .* Received shape: \(3, 1\)",
        ),
        (
            {"image_labels": [5, 6, 7]},
            "`image_labels` and `text_labels` must have labels in common",
        ),
        *[
            ({"ks": ks}, "`ks` must be different whole numbers from 1")
            for ks in [(), (0, 1), (1, 1, 5), (1.5,), (True, 2), 5, None, "15"]
        ],
        *[
            ({"image_labels": labels}, "`image_labels` must be whole numbers")
            for labels in [
                [0, 1, None],
                [0, 1, np.nan],
                [0, 1, "2"],
                [0, 1, 2.5],
            ]
        ],
        (
            {"image_labels": np.ma.masked_equal([0, 1, 2], 2)},
            "`image_labels` must be there for all",
        ),
        (
            {"image_labels": ["0", "1", "2"]},
            "`image_labels` and .* of one kind. Received: strings and numbers",
        ),
        (
            {"image_embeddings": 1j * np.eye(3)},
            "`image_embeddings` must be real .* ndarray of complex128",
        ),
        (
            {"text_embeddings": np.ma.masked_equal(np.eye(3), 1)},
            "`text_embeddings` must be .* Received: MaskedArray",
        ),
        ({"ap50_queries": "image"}, "'class' or 'caption'"),
    ],
)
def test_what_cannot_be_measured_is_an_error(change, message):
    with pytest.raises(ValueError, match=message):
        metrics(**GOOD | change)


@pytest.mark.filterwarnings("ignore")  # those of importing torch
@pytest.mark.parametrize("images_per_label", [1, 3])
def test_torchmetrics_finds_the_same(images_per_label):
    """The slow versions say the same where it is not installed."""
    functional = pytest.importorskip("torchmetrics.functional.retrieval")
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    labels = labels_of(12, (1, 10), images_per_label, rng)
    images, texts = related(labels[0], rng), related(labels[1], rng)
    measured = metrics(images, texts, *labels)
    x, z = (a / np.linalg.norm(a, axis=1)[:, None] for a in (images, texts))
    for direction, scores, same in (
        ("i2t", x @ z.T, labels[0][:, None] == labels[1]),
        ("t2i", z @ x.T, labels[1][:, None] == labels[0]),
    ):
        # It takes nothing of negative score for relevant.
        queries = list(zip(torch.tensor(scores + 1), torch.tensor(same)))
        for name, measure in {
            "r1": lambda *query: functional.retrieval_hit_rate(*query, top_k=1),
            "r5": lambda *query: functional.retrieval_hit_rate(*query, top_k=5),
            "map": functional.retrieval_average_precision,
        }.items():
            theirs = np.mean([float(measure(*query)) for query in queries])
            ours = measured[f"{direction}_{name}"]
            assert ours == pytest.approx(theirs, abs=1e-6)
