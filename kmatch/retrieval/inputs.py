"""What retrieval is measured from, checked."""

from collections.abc import Iterable, Sequence
from numbers import Integral, Real

import numpy as np


def unit_rows(**embeddings) -> list[np.ndarray]:
    """Returns both sides' embeddings in float32 with norm 1, zeros as zeros.

    Raises:
        ValueError: Naming the side, if they cannot be compared.
    """
    arrays = matrices(**embeddings)
    return [_unit_rows(*own) for own in zip(embeddings, arrays)]


def matrices(**embeddings) -> list[np.ndarray]:
    """Returns both sides' embeddings as arrays.

    Raises:
        ValueError: Naming the side, if they are no matrices of one width.
    """
    arrays = [_matrix(side, x) for side, x in embeddings.items()]
    dims = [x.shape[1] for x in arrays]
    if dims[0] != dims[1]:
        raise ValueError(
            f"{_names(embeddings, 'embeddings')} must have the same number of "
            f"dims. Received: {dims[0]} and {dims[1]}. Take both from one "
            "model."
        )
    return arrays


def _matrix(side, embeddings):
    x = np.asarray(embeddings)
    if x.dtype.kind == "V":  # such as bfloat16
        x = x.astype(np.float32)
    if np.ma.is_masked(embeddings) or x.dtype.kind not in "fiub":
        raise ValueError(
            f"`{side}_embeddings` must be real numbers, none of them masked. "
            f"Received: {type(embeddings).__name__} of {x.dtype}."
        )
    if x.ndim != 2 or 0 in x.shape:
        raise ValueError(
            f"`{side}_embeddings` must be a matrix [items, dims] of at least "
            f"one item. Received shape: {x.shape}."
        )
    return x


def _unit_rows(side, x):
    if x.dtype != np.float64:
        x = x.astype(np.float32, copy=False)
        squares = np.einsum("nd,nd->n", x, x)
        if 1e-20 < squares.min() and squares.max() < 1e20:
            return x / np.sqrt(squares)[:, None]
    largest = np.maximum(x.max(axis=1), -x.min(axis=1))
    bad = np.flatnonzero(~np.isfinite(largest))
    if len(bad):
        raise ValueError(
            f"`{side}_embeddings` must be finite. Received NaN or infinite "
            f"values in {len(bad)} of {len(x)} rows, first in row {bad[0]}. "
            "Leave those items out, or see where training diverged."
        )
    # Scaled by its largest entry first, a row's squares cannot overflow.
    x = x / np.where(largest > 0, largest, 1)[:, None]
    x = x.astype(np.float32, copy=False)
    norms = np.sqrt(np.einsum("nd,nd->n", x, x))
    x /= np.where(norms > 0, norms, 1)[:, None]
    return x


def checked_labels(**sides) -> list[np.ndarray]:
    """Returns both sides' labels as arrays of one kind.

    Raises:
        ValueError: Naming the side, if there is not one label for each of its
            embeddings; if labels are neither whole numbers nor strings; or if
            the sides have no label in common.
    """
    labels = []
    for side, (given, embeddings) in sides.items():
        # Of a list, NumPy would make floats or strings without a word.
        own = given if hasattr(given, "dtype") else np.array(given, object)
        if np.ma.is_masked(own):
            raise ValueError(
                f"`{side}_labels` must be there for all. Received: masked ones."
            )
        own = np.asarray(own)
        if own.shape != (len(embeddings),):
            raise ValueError(
                f"`{side}_labels` must hold one label for each of "
                f"{len(embeddings)} embeddings. Received shape: {own.shape}."
            )
        labels.append(_labels(side, own))
    kinds = ["strings" if x.dtype.kind == "U" else "numbers" for x in labels]
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"{_names(sides, 'labels')} must be of one kind. "
            f"Received: {kinds[0]} and {kinds[1]}."
        )
    if not len(np.intersect1d(*labels)):
        raise ValueError(
            f"{_names(sides, 'labels')} must have labels in common, or nothing "
            f"can be found. Received: {labels[0][:3]}... and {labels[1][:3]}..."
            ". Number both sides the same way."
        )
    return labels


def _labels(side, x):
    """Labels as int64, Python's whole numbers where those end, or strings."""
    if x.dtype.kind in "OST":
        x = np.array([_plain(label) for label in x.astype(object)], object)
    elif x.dtype.kind in "fV":  # V: such as bfloat16
        x = x.astype(np.float64)
    kind = x.dtype.kind
    if kind == "O":
        if all(isinstance(label, str) for label in x):
            return x.astype(str)
        if all(isinstance(label, Integral) for label in x):
            return _whole_numbers(x)
        if all(isinstance(label, Real) for label in x):
            x, kind = x.astype(np.float64), "f"
    if kind == "f" and np.all(np.abs(x) < 2**53) and np.all(x == np.round(x)):
        return x.astype(np.int64)
    if kind in "iub":
        return _whole_numbers(x)
    if kind == "U":
        return x
    raise ValueError(
        f"`{side}_labels` must be whole numbers or strings. "
        f"Received: {x.tolist()[:3]}... of {x.dtype}."
    )


def _plain(label):
    """A label as Python has it, also from bytes or a tensor of one number."""
    if not isinstance(label, (str, bytes, Real)):
        x = np.asarray(label)
        label = x.item() if x.ndim == 0 else label
    return label.decode() if isinstance(label, bytes) else label


def _whole_numbers(x):
    limits = np.iinfo(np.int64)
    if x.dtype.kind in "uO" and len(x):
        if x.max() > limits.max or x.min() < limits.min:
            return x.astype(object)
    return x.astype(np.int64)


def checked_ks(ks: Sequence[int]) -> tuple[int, ...]:
    """Returns the K of R@K, each of which must be a rank of its own."""
    if isinstance(ks, Iterable) and not isinstance(ks, (str, bytes)):
        ks = tuple(ks)
        whole = all(isinstance(k, Integral) and k is not True for k in ks)
        if ks and whole and min(ks) >= 1 and len(set(ks)) == len(ks):
            return tuple(int(k) for k in ks)
    raise ValueError(
        "`ks` must be different whole numbers from 1, such as (1, 5, 10). "
        f"Received: {ks!r}."
    )


def _names(sides, what):
    return " and ".join(f"`{side}_{what}`" for side in sides)
