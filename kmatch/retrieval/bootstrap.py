"""How sure a figure is, and whether two differ: by resampling clusters.

A cluster is an image with its captions, or all that shares a label. Queries of
one cluster succeed and fail together, so that five captions of an image are
worth less than five captions of five images: whole clusters are drawn. Ranks
are those in the full gallery; only who asks is drawn anew.
"""

from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from kmatch.retrieval.measures import Measured, Sample, with_rsum

DRAWS = 2000

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

    def resampled(fold, weights):
        return {
            name: resampled_results(sample, weights)
            for name, sample in fold.samples.items()
        }

    drawn = _mean_of_folds(folds, draws, resampled, resampling_weights)
    num_clusters = sum(fold.num_clusters for fold in folds)
    found = {}
    for name, figure in mean_metrics(folds).items():
        sample = folds[0].samples.get(name)
        if sample is not None and sample.statistic == "median":
            found[name] = percentiles(drawn[name], confidence)
            continue
        ranges = [fold.range(name) for fold in folds]
        found[name] = score_interval(
            figure,
            drawn[name],
            *np.mean(ranges, axis=0),
            num_clusters,
            confidence,
            all_or_nothing=sample is None or not sample.is_rank,
        )
    return found


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

    def resampled(pair, weights):
        return {
            name: resampled_results(this, weights)
            - resampled_results(other, weights)
            for name, this, other in _samples(pair)
        }

    def permuted(pair, swapped):
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
            percentiles(bootstrapped[name], 0.95),
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


def resampled_results(sample: Sample, weights: np.ndarray) -> np.ndarray:
    """What a metric comes to in each draw.

    Args:
        sample: The metric's values.
        weights: `[draws, clusters]`, from `resampling_weights`.
    """
    if sample.statistic == "median":
        return _medians(sample.values, sample.clusters, weights)
    sums, counts = _per_cluster(sample, weights.shape[1])
    return (weights @ sums) / (weights @ counts)


def percentiles(draws: np.ndarray, confidence: float) -> Interval:
    """The middle part of the draws."""
    tail = (1 - confidence) / 2
    return Interval(*np.quantile(draws, [tail, 1 - tail]).tolist())


def score_interval(
    figure: float,
    draws: np.ndarray,
    lowest: float,
    highest: float,
    num_clusters: int,
    confidence: float,
    all_or_nothing: bool = True,
) -> Interval:
    """Wilson's score interval, with the spread that resampling finds.

    The middle part of the draws would take 50 hits of 50 for certainty, and
    would lean to the wrong side near either end of the range. Wilson (1927)
    asks for which true figures this one is no surprise; in place of the
    number of answers stands how many independent ones would spread as much
    (Korn & Graubard, 1998).

    Args:
        figure: What was measured.
        draws: What it comes to when clusters are drawn anew.
        lowest: The least it can be.
        highest: The most it can be.
        num_clusters: How many clusters there are.
        confidence: How many of such intervals cover the true figure.
        all_or_nothing: Whether a cluster's queries may all score the least,
            or all the most. Ranks hardly ever do.
    """
    width = highest - lowest
    if width <= 0:
        return Interval(figure, figure)
    share = (figure - lowest) / width
    degrees = max(num_clusters - 1, 1)
    variance = np.var(draws / width) * num_clusters / degrees
    yes_or_no = share * (1 - share)
    # One over the number of independent answers. Where all clusters score
    # alike they say nothing about their spread, and where most do, little.
    if min(variance, yes_or_no) < 1e-18:
        rate = 1 / num_clusters
    else:
        rate = variance / yes_or_no
        if all_or_nothing:
            rate += (1 / num_clusters - rate) / (num_clusters + 1)
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    quantile = normal + (normal**3 + normal) / (4 * degrees)  # about Student's
    shift = quantile**2 * rate
    middle = share + shift / 2
    half = np.sqrt(shift * yes_or_no + shift**2 / 4)
    ends = np.clip(np.array([middle - half, middle + half]) / (1 + shift), 0, 1)
    # Rounding must not put the figure outside.
    low, high = lowest + width * ends
    return Interval(float(min(low, figure)), float(max(high, figure)))


def _per_cluster(sample, num_clusters):
    sums = np.bincount(sample.clusters, sample.values, num_clusters)
    return sums, np.bincount(sample.clusters, minlength=num_clusters)


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
    return resampled_results(
        both, np.hstack([kept, swapped])
    ) - resampled_results(both, np.hstack([swapped, kept]))


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
            drawn.append(with_rsum(results(fold, rows), first.recalls))
        blocks.append(
            {n: np.mean([own[n] for own in drawn], axis=0) for n in drawn[0]}
        )
    return {n: np.concatenate([b[n] for b in blocks]) for n in blocks[0]}
