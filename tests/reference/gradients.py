"""Gradients taken numerically."""

import numpy as np
import tensorflow as tf


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


def check_gradients(ours, slow, arrays):
    """Compares values, and gradients by each of the arrays."""
    tensors = [tf.constant(array, tf.float32) for array in arrays]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        value = ours(*tensors)
    np.testing.assert_allclose(value, slow(*arrays), rtol=1e-5, atol=1e-5)
    gradients = tape.gradient(
        value, tensors, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    for i, gradient in enumerate(gradients):
        expected = numeric_gradient(
            lambda array, i=i: slow(*arrays[:i], array, *arrays[i + 1 :]),
            arrays[i],
        )
        np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=2e-5)
