"""How sure a figure is, and whether two differ: by resampling clusters.

A cluster is an image with its captions, or all that shares a label. Queries of
one cluster succeed and fail together, so that five captions of an image are
worth less than five captions of five images: whole clusters are drawn. Ranks
are those in the full gallery; only who asks is drawn anew.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from kmatch.retrieval.measures import Measured, Sample, with_rsum

DRAWS = 2000

# Resampling alone takes 50 hits of 50 for certainty. As in the interval of
# Agresti & Coull (1998), two more values at either end of the range are
# drawn with the others, each worth as much as one independent query.
_ADDED_AT_EACH_END = 2

# Draws at a time: weights of 5,000 clusters are then 5 MB.
_BLOCK = 250


class Interval(NamedTuple):
    """The range that covers the true figure with some confidence."""

    low: float
    high: float


class Difference(NamedTuple):
    """One figure of two models on the same queries.

    Attributes:
        this: The one model's figure.
        other: The other's.
        interval: Of `this - other`, with 95 % confidence.
        p_value: How often chance alone makes a difference as large.
    """

    this: float
    other: float
    interval: Interval
    p_value: float

    @property
    def value(self) -> float:
        """`this - other`."""
        return self.this - self.other

    @property
    def real(self) -> bool:
        """Whether chance makes such a difference in less than 5 %."""
        return bool(self.p_value < 0.05)


def intervals(
    folds: Sequence[Measured], confidence: float = 0.95, draws: int = DRAWS
) -> dict[str, Interval]:
    """Confidence intervals of all metrics, by resampling clusters.

    Args:
        folds: What was measured in each gallery; figures are their mean.
        confidence: How many of such intervals cover the true figure.
        draws: How often to resample.
    """
    check_confidence(confidence)

    def resampled(fold, weights, rng):
        return {
            name: resampled_results(sample, weights, rng, len(folds))
            for name, sample in fold.samples.items()
        }

    drawn = _mean_of_folds(folds, draws, resampled, resampling_weights)
    return {name: interval(x, confidence) for name, x in drawn.items()}


def check_confidence(confidence: float):
    """Refuses what is no confidence."""
    if not 0 < confidence < 1:
        raise ValueError(
            "`confidence` must be between 0 and 1, such as 0.95. "
            f"Received: {confidence}."
        )


def differences(
    folds: Sequence[Measured], others: Sequence[Measured], draws: int = DRAWS
) -> dict[str, Difference]:
    """Compares two models query by query.

    The interval is that of the mean difference when clusters are resampled.
    The p-value is that of a permutation test: were the models alike, it would
    not matter which of them answered a cluster's queries, so that they change
    places at random.

    Args:
        folds: What was measured of the one model.
        others: The same of the other, on the same queries.
        draws: How often to resample, and to permute.
    """
    pairs = list(zip(folds, others))

    def resampled(pair, weights, _):
        return {
            name: _result(this, weights) - _result(other, weights)
            for name, this, other in _samples(pair)
        }

    def permuted(pair, swapped, _):
        return {
            name: _permuted_difference(this, other, swapped)
            for name, this, other in _samples(pair)
        }

    bootstrapped = _mean_of_folds(pairs, draws, resampled, resampling_weights)
    by_chance = _mean_of_folds(pairs, draws, permuted, _swaps)
    this, other = mean_metrics(folds), mean_metrics(others)
    return {
        name: Difference(
            this[name],
            other[name],
            interval(bootstrapped[name], 0.95),
            _p_value(by_chance[name], this[name] - other[name]),
        )
        for name in this
    }


def mean_metrics(folds: Sequence[Measured]) -> dict[str, float]:
    """The mean of each metric over the folds."""
    metrics = [fold.metrics() for fold in folds]
    return {
        name: float(np.mean([own[name] for own in metrics]))
        for name in metrics[0]
    }


def resampling_weights(
    num_clusters: int, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """How often each cluster is drawn: `[draws, clusters]`."""
    drawn = rng.integers(num_clusters, size=[draws, num_clusters])
    drawn += np.arange(draws)[:, None] * num_clusters
    weights = np.bincount(drawn.ravel(), minlength=drawn.size)
    return weights.reshape(draws, num_clusters).astype(np.float32)


def resampled_results(
    sample: Sample,
    weights: np.ndarray,
    rng: np.random.Generator,
    num_folds: int = 1,
) -> np.ndarray:
    """What a metric comes to in each draw.

    Args:
        sample: The metric's values.
        weights: `[draws, clusters]`, from `resampling_weights`.
        rng: For the values added at the ends of the range.
        num_folds: The added values are shared among so many folds.
    """
    if sample.statistic == "median":
        return _result(sample, weights)
    sums, counts = _per_cluster(sample, weights.shape[1])
    worth = _worth_of_one(sample, sums, counts) / num_folds
    low, high = worth * rng.poisson(_ADDED_AT_EACH_END, [2, len(weights)])
    total = weights @ sums + low * sample.lowest + high * sample.highest
    return total / (weights @ counts + low + high)


def interval(draws: np.ndarray, confidence: float) -> Interval:
    """The middle part of the draws."""
    tail = (1 - confidence) / 2
    return Interval(*np.quantile(draws, [tail, 1 - tail]).tolist())


def _worth_of_one(sample, sums, counts):
    """How many queries are worth one independent answer of yes or no."""
    share = (sample.result() - sample.lowest) / (
        sample.highest - sample.lowest or 1
    )
    deviations = sums - sample.result() * counts
    variance = np.sum(deviations**2) / np.sum(counts) ** 2
    variance /= (sample.highest - sample.lowest or 1) ** 2
    # Where all clusters score alike they say nothing about their spread.
    independent = share * (1 - share) / variance if variance else len(counts)
    return np.sum(counts) / max(independent, 1)


def _per_cluster(sample, num_clusters):
    sums = np.bincount(sample.clusters, sample.values, num_clusters)
    return sums, np.bincount(sample.clusters, minlength=num_clusters)


def _result(sample, weights):
    """What the values come to with each row of clusters' weights."""
    if sample.statistic == "median":
        return _medians(sample.values, sample.clusters, weights)
    sums, counts = _per_cluster(sample, weights.shape[1])
    return (weights @ sums) / (weights @ counts)


def _medians(values, clusters, weights):
    order = np.argsort(values, kind="stable")
    values, clusters = values[order], clusters[order]
    reached = np.cumsum(weights[:, clusters], axis=1, dtype=np.float32)
    half = reached[:, -1:] / 2
    # With an even number the mean of the two in the middle, as NumPy has it.
    lower = np.argmax(reached >= half, axis=1)
    upper = np.argmax(reached > half, axis=1)
    return (values[lower] + values[upper]) / 2


def _permuted_difference(this, other, swapped):
    kept = 1 - swapped
    if this.statistic == "mean":
        ours, counts = _per_cluster(this, swapped.shape[1])
        theirs, _ = _per_cluster(other, swapped.shape[1])
        return (kept - swapped) @ (ours - theirs) / np.sum(counts)
    both = Sample(
        np.concatenate([this.values, other.values]),
        np.concatenate([this.clusters, other.clusters + swapped.shape[1]]),
        statistic=this.statistic,
    )
    return _result(both, np.hstack([kept, swapped])) - _result(
        both, np.hstack([swapped, kept])
    )


def _p_value(by_chance, difference):
    # Sums in another order differ in the last bits.
    as_large = np.abs(by_chance) >= abs(difference) - 1e-9
    return (1 + np.sum(as_large)) / (1 + len(by_chance))


def _swaps(num_clusters, draws, rng):
    return rng.integers(2, size=[draws, num_clusters]).astype(np.float32)


def _samples(pair):
    this, other = pair
    return [(n, x, other.samples[n]) for n, x in this.samples.items()]


def _mean_of_folds(folds, draws, results: Callable, weights: Callable):
    """Draws in blocks; a figure of several folds is their mean."""
    rng = np.random.default_rng(0)
    blocks = []
    for start in range(0, draws, _BLOCK):
        size = min(_BLOCK, draws - start)
        drawn = []
        for fold in folds:
            first = fold[0] if isinstance(fold, tuple) else fold
            rows = weights(first.num_clusters, size, rng)
            drawn.append(with_rsum(results(fold, rows, rng), first.recalls))
        blocks.append(
            {n: np.mean([own[n] for own in drawn], axis=0) for n in drawn[0]}
        )
    return {n: np.concatenate([b[n] for b in blocks]) for n in blocks[0]}
