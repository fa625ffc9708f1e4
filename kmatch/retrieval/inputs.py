"""What retrieval is measured from, checked."""

import numpy as np


def unit_rows(**embeddings) -> list[np.ndarray]:
    """Returns both sides' embeddings in float32 with norm 1, zeros as zeros.

    Raises:
        ValueError: Naming the side, if they cannot be compared.
    """
    arrays = [_unit_rows(side, x) for side, x in embeddings.items()]
    dims = [x.shape[1] for x in arrays]
    if dims[0] != dims[1]:
        raise ValueError(
            f"{_names(embeddings, 'embeddings')} must have the same number of "
            f"dims. Received: {dims[0]} and {dims[1]}. Take both from one "
            "model."
        )
    return arrays


def _unit_rows(side, embeddings):
    x = np.asarray(embeddings)
    if x.ndim != 2 or 0 in x.shape:
        raise ValueError(
            f"`{side}_embeddings` must be a matrix [items, dims] of at least "
            f"one item. Received shape: {x.shape}."
        )
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
    """Returns both sides' labels as arrays.

    Raises:
        ValueError: Naming the side, if there is not one label for each of its
            embeddings; or if the sides have no label in common.
    """
    labels = []
    for side, (given, embeddings) in sides.items():
        labels.append(np.asarray(given))
        if labels[-1].shape != (len(embeddings),):
            raise ValueError(
                f"`{side}_labels` must hold one label for each of "
                f"{len(embeddings)} embeddings. Received shape: "
                f"{labels[-1].shape}."
            )
    if not np.isin(*labels).any():
        raise ValueError(
            f"{_names(sides, 'labels')} must have labels in common, or nothing "
            f"can be found. Received: {labels[0][:3]}... and {labels[1][:3]}..."
            ". Number both sides the same way."
        )
    return labels


def _names(sides, what):
    return " and ".join(f"`{side}_{what}`" for side in sides)
