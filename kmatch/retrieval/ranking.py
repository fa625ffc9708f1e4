"""Exact ranks by cosine similarity, in blocks, with fair ties.

A gallery is first brought into one fixed random order. Of items with equal
scores the one that comes first in it wins, so that items nobody can tell
apart rank by chance, however the caller had sorted them. Scores exist one
block of rows at a time, and the rank of an item is one more than the number
of items ahead of it in its row.
"""

from dataclasses import dataclass
from numbers import Integral

import numpy as np

from kmatch.retrieval.inputs import checked_labels, unit_rows
from kmatch.retrieval.scores import each_block, pair_scores

# With so many relevant items, sorting a row is quicker than counting for each.
SORT_FROM = 32

# With more relevant rows per column, two products are quicker than counting
# for each.
SHARE_UP_TO = 16


@dataclass(frozen=True)
class Ranks:
    """Where each query finds the items that are relevant to it.

    Queries without a relevant item in the gallery are left out, and counted.

    Attributes:
        queries: Indices of the queries that have relevant items.
        ranks: Ranks of the relevant items, from 1 for the best: those of the
            first of `queries` in rising order, those of the second, ...
        starts: Where in `ranks` those of each query start.
        gallery_size: Number of items in the gallery.
        num_left_out: Number of queries without a relevant item.

    >>> found = ranks([[1, 0], [0, 1]], [[1, 0], [1, 2]], [7, 8], [8, 7])
    >>> found.first
    array([2, 2], dtype=int32)
    >>> found.average_precision
    array([0.5, 0.5])
    """

    queries: np.ndarray
    ranks: np.ndarray
    starts: np.ndarray
    gallery_size: int
    num_left_out: int

    @property
    def num_relevant(self) -> np.ndarray:
        """Number of relevant items of each query."""
        return np.diff(self.starts, append=len(self.ranks))

    @property
    def first(self) -> np.ndarray:
        """Rank of each query's best relevant item."""
        return self.ranks[self.starts]

    @property
    def precision(self) -> np.ndarray:
        """Share of relevant items down to each of `ranks`."""
        return self._hits() / self.ranks

    @property
    def average_precision(self) -> np.ndarray:
        """Mean precision at the ranks of each query's relevant items."""
        return self.sum(self.precision) / self.num_relevant

    @property
    def legacy_average_precision(self) -> np.ndarray:
        """What ITMeetsAL's tables call AP, for comparing with them only.

        Precision at a relevant item counts only the items before it, unless
        it is the very first.
        """
        precision = (self._hits() - (self.ranks > 1)) / self.ranks
        return self.sum(precision) / self.num_relevant

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Adds up, by query, one value for each of `ranks`."""
        return np.add.reduceat(values, self.starts)

    def _hits(self):
        before = np.repeat(self.starts, self.num_relevant)
        return np.arange(1, len(self.ranks) + 1) - before


def ranks(
    query_embeddings, gallery_embeddings, query_labels, gallery_labels
) -> Ranks:
    """Ranks a gallery for every query by cosine similarity.

    Args:
        query_embeddings: `[n, d]`.
        gallery_embeddings: `[m, d]`.
        query_labels: `[n]`; relevant to a query are items with its label.
        gallery_labels: `[m]`.

    Returns:
        `Ranks`.

    >>> ranks([[0, 1]], [[1, 0], [0, 2], [1, 1]], ["a"], ["a", "b", "a"]).ranks
    array([2, 3], dtype=int32)
    """
    return one_way(
        *unit_rows(query=query_embeddings, gallery=gallery_embeddings),
        *checked_labels(
            query=(query_labels, query_embeddings),
            gallery=(gallery_labels, gallery_embeddings),
        ),
    )


def ranks_both_ways(
    image_embeddings, text_embeddings, image_labels, text_labels
) -> tuple[Ranks, Ranks]:
    """Ranks texts for every image, and images for every text.

    The same as two calls of `ranks`, usually from a single product.

    Args:
        image_embeddings: `[n, d]`.
        text_embeddings: `[m, d]`.
        image_labels: `[n]`.
        text_labels: `[m]`.

    Returns:
        `Ranks` of the images as queries, and of the texts as queries.

    >>> images, texts = [[1, 0], [0, 1]], [[1, 0], [2, 1], [1, 2]]
    >>> i2t, t2i = ranks_both_ways(images, texts, [0, 1], [0, 1, 1])
    >>> t2i.first
    array([1, 2, 1], dtype=int32)
    """
    return both_ways(
        *unit_rows(image=image_embeddings, text=text_embeddings),
        *checked_labels(
            image=(image_labels, image_embeddings),
            text=(text_labels, text_embeddings),
        ),
    )


def top_k(
    query_embeddings, gallery_embeddings, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Finds the best items for every query, ties broken as in `ranks`.

    Args:
        query_embeddings: `[n, d]`.
        gallery_embeddings: `[m, d]`.
        k: How many; all, if the gallery is smaller.

    Returns:
        Indices into the gallery `[n, k]`, best first, and their scores.

    >>> indices, scores = top_k([[1, 0]], [[0, 1], [2, 0], [1, 1]], k=2)
    >>> indices
    array([[1, 2]])
    >>> scores.round(3)
    array([[1.   , 0.707]], dtype=float32)
    """
    if not isinstance(k, Integral) or k < 1:
        raise ValueError(f"`k` must be a whole number from 1. Received: {k!r}.")
    queries, gallery = unit_rows(
        query=query_embeddings, gallery=gallery_embeddings
    )
    order = tie_order(len(gallery))
    k = min(k, len(gallery))

    def best(_, scores):
        keys = np.partition(_keys(scores), k - 1, axis=1)[:, :k]
        places = np.sort(keys, axis=1) & 0xFFFFFFFF
        return order[places], np.take_along_axis(scores, places, axis=1)

    rows = np.arange(len(queries))
    indices, scores = zip(*each_block(best, queries, rows, gallery, order))
    return np.concatenate(indices), np.concatenate(scores)


def both_ways(images, texts, image_labels, text_labels) -> tuple[Ranks, Ranks]:
    """`ranks_both_ways` of embeddings and labels that have been checked."""
    if len(images) < len(texts):  # of blocks, the longer side makes the rows
        return both_ways(texts, images, text_labels, image_labels)[::-1]
    _, images_per_label = np.unique(image_labels, return_counts=True)
    shared = None
    if images_per_label.max() <= SHARE_UP_TO:
        shared = _both_from_one_product(
            images, texts, image_labels, text_labels
        )
    return shared or (
        one_way(images, texts, image_labels, text_labels),
        one_way(texts, images, text_labels, image_labels),
    )


def tie_order(size):
    """The order in which a gallery's items win ties; fixed by its size."""
    return np.random.default_rng(0).permutation(size)


def one_way(queries, gallery, query_labels, gallery_labels) -> Ranks:
    """`ranks` of embeddings and labels that have been checked."""
    order = tie_order(len(gallery))
    first, last, places = _relevant(query_labels, gallery_labels[order])

    def count(start, scores):
        return _ranks_in_rows(scores, first[start:], last[start:], places)

    rows = np.arange(len(queries))
    found = list(each_block(count, queries, rows, gallery, order))
    return _ragged(np.concatenate(found), last - first, len(gallery))


def _relevant(query_labels, gallery_labels):
    """For each query, finds where in `places` its relevant items stand."""
    places = np.argsort(gallery_labels, kind="stable")
    by_label = gallery_labels[places]
    first = np.searchsorted(by_label, query_labels, side="left")
    last = np.searchsorted(by_label, query_labels, side="right")
    return first, last, places


def _ragged(found, counts, gallery_size):
    """Makes `Ranks` of ranks that come query by query, with their counts."""
    queries = np.flatnonzero(counts)
    ends = np.cumsum(counts[queries])
    return Ranks(
        queries=queries,
        ranks=found,
        starts=ends - counts[queries],
        gallery_size=gallery_size,
        num_left_out=len(counts) - len(queries),
    )


def _ranks_in_rows(scores, first, last, places):
    """Returns row by row the ranks of the items at `places[first:last]`."""
    first, last = first[: len(scores)], last[: len(scores)]
    found = np.zeros([len(scores), np.max(last - first)], np.int32)
    many = last - first >= SORT_FROM
    for row in np.flatnonzero(many):
        keys = _keys(scores[row])
        own = keys[places[first[row] : last[row]]]
        found[row, : len(own)] = np.searchsorted(np.sort(keys), own) + 1
    counts = np.where(many, 0, last - first)
    for i in range(counts.max()):  # all rows' first items, second ones, ...
        rows = np.flatnonzero(counts > i)
        some = scores if len(rows) == len(scores) else scores[rows]
        place = places[first[rows] + i, None]
        own = np.take_along_axis(some, place, axis=1)
        ahead, tied = some > own, some == own
        if np.count_nonzero(tied) > len(rows):  # not with themselves only
            ahead |= tied & (np.arange(scores.shape[1]) < place)
        found[rows, i] = [np.count_nonzero(row) + 1 for row in ahead]
    found.sort(axis=1)
    return found[found > 0]


def _keys(scores):
    """Returns int64 that sort by falling score, then by place."""
    bits = (scores + 0.0).view(np.int32)  # -0.0 and 0.0 are a tie
    rising = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits).astype(np.int64)
    return (-rising << 32) + np.arange(scores.shape[-1])


def _both_from_one_product(queries, gallery, query_labels, gallery_labels):
    """Counts both along the rows and down the columns of the same blocks.

    Down a column, some queries come before the item's relevant one. To compare
    with it nevertheless, the scores of relevant pairs are computed ahead, in
    tiles like those of the blocks. Should a block hold another number, as on
    devices that choose kernels by shape, None is returned: counts from two
    kernels would take ties for better or worse.
    """
    row_order, column_order = tie_order(len(queries)), tie_order(len(gallery))
    first, last, places = _relevant(
        query_labels[row_order], gallery_labels[column_order]
    )
    # Relevant pairs, row by row.
    rows = np.repeat(np.arange(len(queries)), last - first)
    columns = np.concatenate([places[i:j] for i, j in zip(first, last)])
    pair_rows, pair_columns = row_order[rows], column_order[columns]
    scores = pair_scores(queries, gallery, pair_rows, pair_columns)

    # One line for the columns' first relevant rows, one for the second, ...
    line = _occurrence(columns)
    bars = np.full([line.max() + 1, len(gallery)], np.inf, np.float32)
    bars[line, columns] = scores
    higher_bars = np.nextafter(bars, np.float32(np.inf))
    # Processes may take the smallest numbers for zeros.
    higher_bars[bars == 0] = np.finfo(np.float32).tiny
    owners = np.zeros(bars.shape, int)
    owners[line, columns] = rows

    def count(start, block):
        stop = start + len(block)
        pairs = slice(*np.searchsorted(rows, [start, stop]))
        own = block[rows[pairs] - start, columns[pairs]]
        if not np.array_equal(own, scores[pairs]):
            return None
        along = _ranks_in_rows(block, first[start:], last[start:], places)
        # Rows before a column's own win ties against it, later ones do not.
        block_bars = np.where(owners < stop, higher_bars, bars)
        down = [_count_down(block >= line_bars) for line_bars in block_bars]
        tied = block[:, columns[pairs]] == own
        tied &= np.arange(start, stop)[:, None] < rows[pairs]
        return along, np.stack(down), _count_down(tied)

    along, ties = [], []
    ahead = np.zeros(bars.shape, np.int32)
    for counts in each_block(count, queries, row_order, gallery, column_order):
        if counts is None:
            return None
        along.append(counts[0])
        ahead += counts[1]
        ties.append(counts[2])
    along = np.concatenate(along)
    down = 1 + ahead[line, columns] + np.concatenate(ties)
    return (
        _regrouped(along, pair_rows, len(queries), len(gallery)),
        _regrouped(down, pair_columns, len(gallery), len(queries)),
    )


def _count_down(block):
    """Counts what is true in each column of a block."""
    smallest = np.min_scalar_type(len(block))
    return np.add.reduce(block.view(np.uint8), axis=0, dtype=smallest)


def _occurrence(values):
    """Numbers equal values: 0 for the first of them, 1 for the second, ..."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    numbers = np.empty(len(values), int)
    numbers[order] = np.arange(len(values)) - np.searchsorted(ordered, ordered)
    return numbers


def _regrouped(found, queries, num_queries, gallery_size):
    """Makes `Ranks` of ranks that come in any order, with their queries."""
    order = np.lexsort((found, queries))
    counts = np.bincount(queries, minlength=num_queries)
    return _ragged(found[order], counts, gallery_size)
