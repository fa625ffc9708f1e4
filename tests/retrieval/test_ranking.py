from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf

from kmatch.retrieval import ranking, scores
from kmatch.retrieval.ranking import ranks, ranks_both_ways, tie_order, top_k
from tests.reference import retrieval as reference


def exact(shape, rng):
    """Embeddings of norm 4 whose cosines are exact, so that many are equal."""
    return rng.choice([-1.0, 1.0], size=[*shape, 16])


def random(shape, rng):
    return rng.normal(size=[*shape, 16])


def constant(shape, rng):
    return np.tile(rng.normal(size=16), [*shape, 1])


def same(left, right):
    for name in "queries", "ranks", "starts":
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
    assert left.gallery_size == right.gallery_size
    assert left.num_left_out == right.num_left_out


def spread(found):
    return np.split(found.ranks, found.starts[1:])


@pytest.mark.parametrize("draw", [exact, random])
@pytest.mark.parametrize("num_labels", [3, 60], ids=["sorted", "counted"])
def test_every_relevant_item_has_its_rank(draw, num_labels):
    rng = np.random.default_rng(num_labels)
    queries, gallery = draw([100], rng), draw([200], rng)
    query_labels = rng.integers(num_labels, size=100)
    gallery_labels = rng.integers(num_labels, size=200)
    found = ranks(queries, gallery, query_labels, gallery_labels)
    expected = [
        np.flatnonzero(relevant) + 1
        for relevant in reference.rankings(
            queries, gallery, query_labels, gallery_labels, tie_order(200)
        )
    ]
    counts = np.array([len(each) for each in expected])
    np.testing.assert_array_equal(found.queries, np.flatnonzero(counts))
    np.testing.assert_array_equal(found.ranks, np.concatenate(expected))
    np.testing.assert_array_equal(found.num_relevant, counts[counts > 0])
    assert found.num_left_out == np.sum(counts == 0)


def test_average_precisions():
    rng = np.random.default_rng(0)
    labels = rng.integers(5, size=30), rng.integers(5, size=40)
    embeddings = random([30], rng), random([40], rng)
    found = ranks(*embeddings, *labels)
    relevant = reference.rankings(*embeddings, *labels, tie_order(40))
    for ours, slow in {
        "first": reference.first_rank,
        "average_precision": reference.average_precision,
        "legacy_average_precision": reference.legacy_average_precision,
    }.items():
        np.testing.assert_allclose(
            getattr(found, ours), [slow(each) for each in relevant]
        )


@pytest.mark.parametrize("images_per_label", [1, 3, 20])
@pytest.mark.parametrize("draw", [exact, random])
def test_both_ways_is_each_way(draw, images_per_label):
    rng = np.random.default_rng(images_per_label)
    images, texts = draw([250], rng), draw([700], rng)
    image_labels = rng.permutation(np.arange(250) // images_per_label)
    text_labels = rng.integers(260 // images_per_label, size=700)
    i2t, t2i = ranks_both_ways(images, texts, image_labels, text_labels)
    same(i2t, ranks(images, texts, image_labels, text_labels))
    same(t2i, ranks(texts, images, text_labels, image_labels))


@pytest.mark.parametrize("sizes", [(90, 500), (500, 90), (241, 240)])
@pytest.mark.parametrize("draw", [exact, random, constant])
def test_one_product_serves_both_ways(draw, sizes, monkeypatch):
    rng = np.random.default_rng(0)
    images, texts = draw(sizes[:1], rng), draw(sizes[1:], rng)
    labels = [np.arange(size) % min(sizes) for size in sizes]
    expected = (
        ranks(images, texts, *labels),
        ranks(texts, images, *labels[::-1]),
    )
    monkeypatch.delattr(ranking, "one_way")
    for ours, apart in zip(ranks_both_ways(images, texts, *labels), expected):
        same(ours, apart)


def test_precision_of_products_is_left_as_it_was():
    arguments = [[1.0, 0.0]], [[1.0, 1.0]], [0], [0]
    for reduced in True, False, True:
        tf.config.experimental.enable_tensor_float_32_execution(reduced)
        ranks_both_ways(*arguments)
        now = tf.config.experimental.tensor_float_32_execution_enabled()
        assert now == reduced


def test_evaluations_at_a_time_leave_it_as_it_was():
    enabled = tf.config.experimental.tensor_float_32_execution_enabled()
    rng = np.random.default_rng(0)
    images, texts, labels = random([90], rng), random([90], rng), np.arange(90)
    with ThreadPoolExecutor(4) as threads:
        found = [
            threads.submit(ranks_both_ways, images, texts, labels, labels)
            for _ in range(40)
        ]
    for both in found:
        same(both.result()[0], ranks(images, texts, labels, labels))
    now = tf.config.experimental.tensor_float_32_execution_enabled()
    assert now == enabled


def test_kernels_that_round_by_shape_do_not_matter(monkeypatch):
    rng = np.random.default_rng(0)
    labels = np.arange(100), np.arange(300) // 3
    arguments = exact([100], rng), exact([300], rng), *labels
    expected = ranks_both_ways(*arguments)
    pair_scores = ranking.pair_scores

    def rounded(*arguments):
        return np.nextafter(pair_scores(*arguments), np.float32(1))

    monkeypatch.setattr(ranking, "pair_scores", rounded)
    for ours, without in zip(ranks_both_ways(*arguments), expected):
        same(ours, without)


@pytest.mark.parametrize("draw", [exact, random])
def test_block_size_does_not_matter(draw, monkeypatch):
    rng = np.random.default_rng(0)
    images, texts = draw([1000], rng), draw([2000], rng)
    labels = np.arange(1000), rng.integers(1000, size=2000)
    results = []
    for rows in 96, 192, 960:
        monkeypatch.setattr(scores, "ROWS", rows)
        results.append(ranks_both_ways(images, texts, *labels))
    for other in results[1:]:
        same(results[0][0], other[0])
        same(results[0][1], other[1])


def test_a_query_ranks_alone_as_among_others():
    rng = np.random.default_rng(0)
    queries, gallery = random([300], rng), random([500], rng)
    labels = np.arange(300), np.arange(500) % 300
    together = spread(ranks(queries, gallery, *labels))
    for query in 0, 7, 299:
        alone = ranks(queries[[query]], gallery, [query], labels[1])
        np.testing.assert_array_equal(alone.ranks, together[query])


def test_equal_vectors_tie_wherever_they_stand():
    rng = np.random.default_rng(0)
    query, item = rng.normal(size=[2, 333])
    gallery = np.tile(item, [1001, 1])
    _, scores = top_k(np.tile(query, [101, 1]), gallery, k=1001)
    assert len(np.unique(scores)) == 1


@pytest.mark.parametrize("draw", [exact, random])
def test_top_k(draw):
    rng = np.random.default_rng(0)
    queries, gallery = draw([30], rng), draw([150], rng)
    indices, scores = top_k(queries, gallery, k=7)
    for query, own, own_scores in zip(queries, indices, scores):
        expected = reference.ranking(query, gallery, tie_order(150))[:7]
        np.testing.assert_array_equal(own, expected)
        np.testing.assert_allclose(
            own_scores,
            [reference.cosine(query, gallery[i]) for i in expected],
            rtol=1e-5,
            atol=1e-6,
        )


def test_top_k_of_a_small_gallery_is_all_of_it():
    indices, _ = top_k([[1, 0]], [[0, 1], [1, 0]], k=10)
    np.testing.assert_array_equal(indices, [[1, 0]])
    with pytest.raises(ValueError, match="`k` must be a whole number from 1"):
        top_k([[1, 0]], [[0, 1]], k=0)


def test_zeros_of_either_sign_tie():
    gallery = np.array([[0.0, 1.0], [0.0, -1.0], [0.0, 0.0]] * 20)
    indices, scores = top_k([[-1.0, 0.0], [1.0, 0.0]], gallery, k=60)
    assert not scores.any()
    np.testing.assert_array_equal(indices, [tie_order(60)] * 2)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_only_the_direction_counts(dtype):
    rng = np.random.default_rng(0)
    queries, gallery = exact([20], rng), exact([50], rng)
    labels = np.arange(20), np.arange(50) % 20
    scale = {"float16": 6e4, "float32": 3e38, "float64": 1e300, "int32": 9}
    same(
        ranks((scale[dtype] * queries).astype(dtype), gallery, *labels),
        ranks(queries, gallery, *labels),
    )


def test_an_item_of_zeros_scores_zero():
    gallery = [[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0]]
    indices, scores = top_k([[1.0, 0.0]], gallery, k=3)
    np.testing.assert_array_equal(indices, [[0, 1, 2]])
    np.testing.assert_array_equal(scores, [[1, 0, -1]])
