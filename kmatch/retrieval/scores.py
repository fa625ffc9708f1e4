"""Scores, a block of them at a time."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf

# Products have this many rows, and a multiple of this many columns: kernels
# for odd edges round differently, so that equal vectors would get unequal
# scores. (OpenBLAS's for AVX2 do so anywhere: NumPy's product is no option.)
# Columns' counts in a block fit into bytes, which add up several times faster.
# Rows of a multiple of 4 KB, rare with 144, evict each other from caches.
ROWS = 240
COLUMNS = 144

# So many blocks exist at a time: some more than there are cores, since a
# worker whose product is under way only waits for it.
WORKERS = 2 + min(os.cpu_count() or 1, 8)


def each_block(
    visit: Callable, queries, row_order, gallery, column_order
) -> Iterator:
    """Yields what is made of each block of scores and its first row."""
    columns = _transposed(gallery, column_order)

    def compute(start):
        rows = row_order[start : start + ROWS]
        scores = _product(queries, rows, columns)[:, : len(column_order)]
        return visit(start, scores)

    with _workers() as workers:
        yield from workers.map(compute, range(0, len(row_order), ROWS))


def _transposed(embeddings, order):
    return tf.transpose(tf.constant(embeddings[_filled(order, COLUMNS)]))


def _filled(indices, multiple):
    """Repeats indices until there is a multiple of some number of them."""
    return np.resize(indices, -(-len(indices) // multiple) * multiple)


def _product(embeddings, rows, columns):
    product = tf.matmul(embeddings[_filled(rows, ROWS)], columns)
    return np.asarray(product)[: len(rows)]


@contextlib.contextmanager
def _workers():
    with _FULL_PRECISION, ThreadPoolExecutor(WORKERS) as workers:
        yield workers


class _FullPrecision:
    """Lets GPUs multiply in full precision, which some do only when told to.

    The setting is the whole process's: the first of several evaluations at a
    time changes it, and the last one puts it back.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._users = 0
        self._reduced = False

    def __enter__(self):
        with self._lock:
            if not self._users:
                self._reduced = _config.tensor_float_32_execution_enabled()
                _config.enable_tensor_float_32_execution(False)
            self._users += 1

    def __exit__(self, *_):
        with self._lock:
            self._users -= 1
            if not self._users:
                _config.enable_tensor_float_32_execution(self._reduced)


_config = tf.config.experimental
_FULL_PRECISION = _FullPrecision()


def pair_scores(queries, gallery, rows, columns):
    """Scores of pairs, from products of a few columns and all their rows."""
    scores = np.empty(len(rows), np.float32)
    by_column = np.argsort(columns, kind="stable")
    ordered = columns[by_column]

    def fill(start):
        stop = min(start + COLUMNS, len(gallery))
        pairs = by_column[slice(*np.searchsorted(ordered, [start, stop]))]
        if len(pairs):
            some = _transposed(gallery, np.arange(start, stop))
            tile = _product(queries, rows[pairs], some)
            scores[pairs] = tile[np.arange(len(pairs)), columns[pairs] - start]

    with _workers() as workers:
        list(workers.map(fill, range(0, len(gallery), COLUMNS)))
    return scores
