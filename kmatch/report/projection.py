"""The shared space in two dimensions, by t-SNE."""

import numpy as np

from kmatch.report.plots import (
    IMAGE_COLOR,
    TEXT_COLOR,
    legend_above,
    plot,
)
from kmatch.retrieval.inputs import unit_rows
from kmatch.retrieval.protocols import Embedded

MAX_PAIRS = 250
MIN_PAIRS = 4


def pairs(embedded: Embedded, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws images, each with one of the captions that match it."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(embedded.texts))
    labels, first = np.unique(embedded.text_labels[order], return_index=True)
    images = rng.permutation(len(embedded.images))
    images = images[np.isin(embedded.image_labels[images], labels)][:count]
    places = np.searchsorted(labels, embedded.image_labels[images])
    return images, order[first[places]]


def projection_plot(embedded: Embedded) -> str | None:
    """t-SNE of matched pairs by modality (CMPM Fig. 4, ITMeetsAL Fig. 6).

    Returns:
        The drawing, or None if there are too few pairs for one.
    """
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    images, texts = pairs(embedded, MAX_PAIRS)
    if len(images) < MIN_PAIRS:
        return None
    x, z = unit_rows(image=embedded.images[images], text=embedded.texts[texts])
    both = np.concatenate([x, z])
    if np.ptp(both, axis=0).max() < 1e-6:
        return None  # nothing to tell apart
    if both.shape[1] == 1:  # too flat to begin with its two main directions
        both = np.pad(both, [(0, 0), (0, 1)])
    # Threads would wait for each other longer than so few points take.
    with threadpool_limits(1):
        points = TSNE(
            perplexity=min(30, (len(both) - 1) / 3),
            init="pca",
            learning_rate="auto",
            random_state=0,
        ).fit_transform(both)
    with plot("Matched images and captions in two dimensions") as drawing:
        drawing.figure.set_size_inches(5.2, 4.4)
        axes = drawing.axes
        x, z = np.split(points, 2)
        axes.plot(
            *np.stack([x, z], axis=1).transpose(2, 1, 0),
            color="#8888",
            linewidth=0.6,
            zorder=1,
        )
        for name, own, color in (
            ("images", x, IMAGE_COLOR),
            ("captions", z, TEXT_COLOR),
        ):
            axes.scatter(*own.T, s=14, c=color, label=name, linewidths=0)
        axes.set_axis_off()
        legend_above(axes, columns=2)
    return drawing.svg
