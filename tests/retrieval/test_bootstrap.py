import numpy as np
import pytest

import kmatch
from kmatch.retrieval import bootstrap
from kmatch.retrieval.measures import Sample

SIMULATIONS = 1000


def simulated(rng, images, captions, share):
    """Hits of captions, which are alike within an image."""
    ease = rng.beta(2 * share, 2 * (1 - share), size=[SIMULATIONS, images, 1])
    return rng.random([SIMULATIONS, images, captions]) < ease


def coverage(samples, truth, num_clusters):
    rng = np.random.default_rng(1)
    weights = bootstrap.resampling_weights(num_clusters, 1000, rng)
    covered = []
    for sample in samples:
        drawn = bootstrap.resampled_results(sample, weights)
        low, high = (
            bootstrap.percentiles(drawn, 0.95)
            if sample.statistic == "median"
            else bootstrap.score_interval(
                sample.result(),
                drawn,
                sample.lowest,
                sample.highest,
                num_clusters,
                0.95,
                all_or_nothing=not sample.is_rank,
            )
        )
        covered.append(low <= truth <= high)
    return np.mean(covered)


@pytest.mark.parametrize(
    "images, captions, share",
    [
        *[(100, 5, 0.5), (100, 5, 0.93), (100, 1, 0.3), (60, 5, 0.05)],
        *[(30, 5, 0.02), (30, 1, 0.02), (50, 5, 0.98), (10, 5, 0.5)],
    ],
)
def test_intervals_cover_the_true_recall(images, captions, share):
    hits = simulated(np.random.default_rng(0), images, captions, share)
    clusters = np.repeat(np.arange(images), captions)
    samples = [Sample(own.ravel(), clusters) for own in hits]
    assert 0.92 <= coverage(samples, share, images) <= 0.98


@pytest.mark.slow
def test_intervals_cover_what_class_retrieval_reaches():
    """With classes of unlike sizes, few of which have 50 images."""
    figures, covering = [], []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        labels = np.repeat(np.arange(40), rng.integers(5, 70, size=40))
        centres = rng.normal(size=[40, 16])
        noise = rng.gamma(4, 1 / 4, size=40)[labels, None]
        images, texts = (
            centres[labels] + noise * rng.normal(size=[len(labels), 16])
            for _ in range(2)
        )
        report = kmatch.evaluate((images, texts), labels=(labels, labels))
        figures.append(report["t2i_ap50"])
        covering.append(report.intervals()["t2i_ap50"])
    truth = np.mean(figures)
    covered = [low <= truth <= high for low, high in covering]
    assert 0.92 <= np.mean(covered) <= 0.98


@pytest.mark.slow
def test_intervals_cover_what_models_reach():
    """Of whole evaluations, whose galleries are drawn anew as well."""
    figures, covering = [], []
    for seed in range(SIMULATIONS):
        rng = np.random.default_rng(seed)
        images = rng.normal(size=[200, 16])
        owners = np.repeat(np.arange(200), rng.integers(1, 8, size=200))
        noise = 2 * rng.gamma(4, 1 / 4, size=200)[owners, None]
        texts = images[owners] + noise * rng.normal(size=[len(owners), 16])
        report = kmatch.evaluate(
            (images, texts), labels=(np.arange(200), owners)
        )
        figures.append(dict(report))
        covering.append(report.intervals())
    for name in figures[0]:
        of_all = np.median if name.endswith("medr") else np.mean
        truth = of_all([own[name] for own in figures])
        covered = [own[name].low <= truth <= own[name].high for own in covering]
        # Medians are whole ranks, of which an interval holds some in full.
        most = 1 if name.endswith("medr") else 0.98
        assert 0.92 <= np.mean(covered) <= most, name


def test_queries_resampled_on_their_own_would_seem_too_sure():
    hits = simulated(np.random.default_rng(0), 100, 5, 0.5)
    samples = [Sample(own.ravel(), np.arange(500)) for own in hits[:200]]
    assert coverage(samples, 0.5, 500) < 0.9


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_intervals_cover_the_true_rank(statistic):
    rng = np.random.default_rng(0)
    ease = rng.normal(size=[SIMULATIONS, 100, 1])
    values = np.exp(3 + ease / 2 + rng.normal(size=[SIMULATIONS, 100, 5]) / 2)
    truth = np.exp(3) if statistic == "median" else np.exp(3.25)
    clusters = np.repeat(np.arange(100), 5)
    samples = [
        Sample(own.ravel(), clusters, 1.0, 1000.0, statistic) for own in values
    ]
    assert 0.92 <= coverage(samples, truth, 100) <= 0.98


def test_weights_draw_as_many_clusters_as_there_are():
    weights = bootstrap.resampling_weights(7, 50, np.random.default_rng(0))
    np.testing.assert_array_equal(weights.sum(axis=1), 7)
    assert len(np.unique(weights, axis=0)) > 40


@pytest.mark.parametrize("size", [1, 2, 30, 31])
def test_a_weighted_median_is_that_of_the_repeated_values(size):
    rng = np.random.default_rng(size)
    values = rng.integers(1, 9, size=size)
    clusters = np.sort(rng.integers((size + 1) // 2, size=size))
    clusters = np.unique(clusters, return_inverse=True)[1]
    weights = rng.integers(1, 4, size=[20, clusters.max() + 1])
    medians = bootstrap._medians(values, clusters, weights.astype("float32"))
    expected = [np.median(np.repeat(values, own[clusters])) for own in weights]
    np.testing.assert_array_equal(medians, expected)


LABELS = np.arange(80), np.repeat(np.arange(80), 3)


def noisy(scale, seed):
    """Embeddings of which fewer are found the more noise there is."""
    images = np.random.default_rng(0).normal(size=[80, 24])
    rng = np.random.default_rng(seed)
    texts = images[LABELS[1]] + rng.normal(scale=scale, size=[240, 24])
    return kmatch.evaluate((images, texts), labels=LABELS)


def test_every_figure_has_an_interval():
    report = noisy(2.5, seed=1)
    found = report.intervals()
    assert set(found) == set(report)
    for name, (low, high) in found.items():
        assert low <= report[name] <= high, name
        assert low < high, name
    wider = report.intervals(0.99)
    assert wider["t2i_r1"].low < found["t2i_r1"].low
    assert noisy(2.5, seed=1).intervals() == found
    with pytest.raises(ValueError, match="between 0 and 1"):
        report.intervals(95)


def test_certainty_takes_more_than_a_few_hits():
    x, labels = np.eye(4), np.arange(4)
    report = kmatch.evaluate((x, x), labels=(labels, labels))
    assert report["i2t_r1"] == 1.0
    low, high = report.intervals()["i2t_r1"]
    assert low < 0.7 and high == 1.0
    few = kmatch.evaluate((x, x), labels=(labels // 2, labels // 2))
    assert few.intervals()["t2i_ap50"] == (0.5, 0.5)  # of four images, all
    sizes = np.repeat(np.arange(12), np.arange(1, 13))
    perfect = kmatch.evaluate((np.eye(12)[sizes],) * 2, labels=(sizes, sizes))
    for name, (low, high) in perfect.intervals().items():
        assert low <= perfect[name] <= high, name
    one = kmatch.evaluate((x[:1], x[:1]), labels=([0], [0])).intervals()
    assert one["i2t_r1"].low < 0.3
    assert one["i2t_medr"] == one["i2t_meanr"] == (1.0, 1.0)


def test_a_real_difference_is_told_from_chance():
    good, same, bad = noisy(2, seed=1), noisy(2, seed=2), noisy(3, seed=1)
    compared = good.compare(bad)
    assert set(compared) == set(good)
    for name in "t2i_r1", "i2t_map", "t2i_medr", "rsum":
        found = compared[name]
        assert found.real and found.p_value < 0.01, name
        assert found.value == pytest.approx(good[name] - bad[name])
        assert found.interval.low <= found.value <= found.interval.high
        assert not found.interval.low <= 0 <= found.interval.high
    assert not good.compare(same)["rsum"].real
    itself = good.compare(good)
    assert {own.p_value for own in itself.values()} == {1.0}
    assert {own.interval for own in itself.values()} == {(0.0, 0.0)}
    lines = str(compared).splitlines()
    assert len(lines) == 7 and lines[1].endswith("real")
    assert str(itself).splitlines()[1].endswith("may be chance")


def test_chance_makes_few_differences_real():
    rng = np.random.default_rng(0)
    weights = rng.integers(2, size=[400, 60]).astype("float32")
    clusters = np.repeat(np.arange(60), 5)
    real = []
    for _ in range(400):
        ease = rng.random([60, 1])
        this, other = (
            Sample((rng.random([60, 5]) < ease).ravel(), clusters)
            for _ in range(2)
        )
        by_chance = bootstrap._permuted_difference(this, other, weights)
        difference = this.result() - other.result()
        real.append(bootstrap._p_value(by_chance, difference) < 0.05)
    assert 0.02 <= np.mean(real) <= 0.08


def test_only_the_same_queries_compare():
    report = noisy(2, seed=1)
    images = np.eye(4)
    labels = np.arange(4)
    other = kmatch.evaluate((images, images), labels=(labels, labels))
    with pytest.raises(ValueError, match="same queries.*80 images"):
        report.compare(other)
    fewer = kmatch.evaluate((images, images), labels=(labels,) * 2, ks=(1,))
    with pytest.raises(ValueError, match="same ks"):
        other.compare(fewer)
    legacy = kmatch.evaluate(
        (images, images), labels=(labels,) * 2, legacy_map=True
    )
    with pytest.raises(ValueError, match="same metrics.*legacy_map"):
        other.compare(legacy)
    with pytest.raises(ValueError, match="another evaluation"):
        report.compare({"rsum": 1})
