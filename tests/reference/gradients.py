"""Gradients taken numerically."""

import numpy as np


def numeric_gradient(function, array, step=1e-5):
    """Central differences of a scalar function, in float64."""
    array = np.array(array, np.float64)
    gradient = np.zeros_like(array)
    for index in np.ndindex(array.shape):
        values = []
        for sign in (1, -1):
            moved = array.copy()
            moved[index] += sign * step
            values.append(function(moved))
        gradient[index] = (values[0] - values[1]) / (2 * step)
    return gradient
