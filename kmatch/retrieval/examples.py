"""Queries worth looking at, with what they found."""

from dataclasses import dataclass

import numpy as np

from kmatch.retrieval.protocols import Embedded
from kmatch.retrieval.ranking import Ranks, top_k

KINDS = {
    "worst": "Worst failures",
    "near": "Near misses",
    "found": "Found at once",
}


@dataclass(frozen=True)
class Example:
    """One query and its first results.

    Attributes:
        kind: `"worst"` for a query that finds its own late, `"near"` for one
            that almost finds it first, `"found"` for one that does.
        query: Its index.
        own: Index of its first relevant item.
        rank: Where that stands.
        results: Indices of the first items.
        hits: Which of them are relevant.
        scores: Their cosine similarities.
    """

    kind: str
    query: int
    own: int
    rank: int
    results: np.ndarray
    hits: np.ndarray
    scores: np.ndarray


def examples(
    embedded: Embedded,
    found: Ranks,
    direction: str,
    count: int = 4,
    k: int = 5,
) -> list[Example]:
    """Chooses the worst failures, the nearest misses and some successes.

    Args:
        embedded: Both sides.
        found: Ranks of all queries in one gallery of all items.
        direction: `"i2t"` or `"t2i"`.
        count: How many of each kind, at most.
        k: How many results of each.

    Returns:
        The failures first; of queries with the same label only one.
    """
    queries, gallery = embedded.images, embedded.texts
    labels, gallery_labels = embedded.image_labels, embedded.text_labels
    if direction == "t2i":
        queries, gallery = gallery, queries
        labels, gallery_labels = gallery_labels, labels
    shown, seen = [], set()
    for kind, places in zip(KINDS, _candidates(found.first)):
        own = []
        for place in places:
            label = labels[found.queries[place]]
            if len(own) < count and label not in seen:
                own.append(place)
                seen.add(label)
        shown += [(kind, place) for place in own]
    if not shown:
        return []
    indices = found.queries[[place for _, place in shown]]
    results, scores = top_k(queries[indices], gallery, k)
    chosen = []
    for (kind, place), query, items, own_scores in zip(
        shown, indices, results, scores
    ):
        relevant = gallery_labels == labels[query]
        hits = relevant[items]
        if hits.any():
            own = items[np.argmax(hits)]
        else:
            own = _first_relevant(queries[query], gallery, relevant)
        rank = int(found.first[place])
        chosen.append(
            Example(kind, int(query), int(own), rank, items, hits, own_scores)
        )
    return chosen


def _first_relevant(query, gallery, relevant):
    (order,), _ = top_k(query[np.newaxis], gallery, len(gallery))
    return order[np.argmax(relevant[order])]


def _candidates(first):
    """Places of the queries of each kind, those to show first leading."""
    order = np.argsort(first, kind="stable")
    missed = order[first[order] > 1]
    half = len(missed) // 2
    # The middle ones are no example of anything.
    found = order[first[order] == 1]
    spread = np.random.default_rng(0).permutation(len(found))
    return missed[half:][::-1], missed[:half], found[spread]
