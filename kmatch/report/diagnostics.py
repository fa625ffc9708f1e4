"""What the space looks like: norms, gap, hubs, similarities, lengths."""

from collections.abc import Sequence

import numpy as np

from kmatch.report.plots import (
    COLORS,
    IMAGE_COLOR,
    TEXT_COLOR,
    legend_above,
    plot,
)
from kmatch.retrieval.inputs import unit_rows
from kmatch.retrieval.measures import hits_at_k, mean_similarity
from kmatch.retrieval.protocols import Embedded
from kmatch.retrieval.ranking import Ranks, top_k

HUB_K = 10
_PAIRS = 20_000


def norms(embedded: Embedded) -> dict[str, np.ndarray]:
    """Norms of the embeddings by modality, before they are normalised."""
    return {
        "images": _norms(embedded.images),
        "captions": _norms(embedded.texts),
    }


def _norms(embeddings):
    x = embeddings.astype(np.float64)
    # Squares of scaled entries cannot overflow.
    scale = np.maximum(np.abs(x).max(axis=1), np.finfo(np.float64).tiny)
    return scale * np.linalg.norm(x / scale[:, None], axis=1)


def are_unit(lengths: dict[str, np.ndarray]) -> bool:
    """Whether the norms say nothing, since all are 1."""
    return all(np.allclose(own, 1, atol=1e-3) for own in lengths.values())


def norms_plot(lengths: dict[str, np.ndarray]) -> str:
    """How long the embeddings of either modality are."""
    with plot("Norms of image and caption embeddings") as drawing:
        _histograms(drawing.axes, lengths, (IMAGE_COLOR, TEXT_COLOR))
        drawing.axes.set(xlabel="Norm before normalisation")
    return drawing.svg


def modality_gap(embedded: Embedded) -> dict[str, float]:
    """How far apart the modalities lie (Liang et al., 2022).

    Returns:
        `distance` between the mean unit embeddings of the two modalities,
        and the mean similarity `within_images` and `within_captions`: 1 where
        all embeddings of a modality are alike.
    """
    images, texts = unit_rows(image=embedded.images, text=embedded.texts)
    centres = images.mean(axis=0), texts.mean(axis=0)
    return {
        "distance": float(np.linalg.norm(centres[0] - centres[1])),
        "within_images": mean_similarity(images),
        "within_captions": mean_similarity(texts),
    }


def hubness(embedded: Embedded) -> dict[str, np.ndarray]:
    """How many queries have an item in their top 10, for every item.

    Returns:
        Counts of the captions, searched by images, and of the images,
        searched by captions.
    """
    sides = embedded.images, embedded.texts
    found = {}
    for name, queries, gallery in (
        ("captions", *sides),
        ("images", *sides[::-1]),
    ):
        indices, _ = top_k(queries, gallery, HUB_K)
        found[name] = np.bincount(indices.ravel(), minlength=len(gallery))
    return found


def hub_figures(counts: np.ndarray, num_queries: int) -> dict[str, float]:
    """Sums up how uneven the counts are.

    Returns:
        `skewness` of the counts, 0 where all items come up alike, and the
        shares of queries that found the `largest` hub and of items that
        `never` came up.
    """
    spread = counts.std()
    deviations = counts - counts.mean()
    return {
        "skewness": float(np.mean(deviations**3) / spread**3)
        if spread
        else 0.0,
        "largest": float(counts.max() / num_queries),
        "never": float(np.mean(counts == 0)),
    }


def hubness_plot(counts: dict[str, np.ndarray]) -> str:
    """Items by how often they are in a top 10."""
    with plot("Items by the number of top-10 lists they are in") as drawing:
        for name, color in ("images", IMAGE_COLOR), ("captions", TEXT_COLOR):
            falling = np.sort(counts[name])[::-1]
            share = np.arange(1, len(falling) + 1) / len(falling)
            drawing.axes.step(
                100 * share,
                falling / max(falling.mean(), 1e-9),
                color=color,
                label=name,
                where="post",
            )
        drawing.axes.axhline(1, color="#888", linewidth=1, linestyle=":")
        drawing.axes.set(
            xlabel="Items, the most frequent first (%)",
            ylabel="Times in a top 10 / mean",
            xlim=(0, 100),
        )
        drawing.axes.grid(True)
        legend_above(drawing.axes, columns=2)
    return drawing.svg


def similarities(embedded: Embedded) -> dict[str, np.ndarray]:
    """Cosine similarities of matched and of unmatched pairs, drawn at random.

    Where all labels are the same, there are no unmatched pairs.
    """
    rng = np.random.default_rng(0)
    images, texts = unit_rows(image=embedded.images, text=embedded.texts)
    left = rng.integers(len(images), size=_PAIRS)
    right = rng.integers(len(texts), size=_PAIRS)
    apart = embedded.image_labels[left] != embedded.text_labels[right]
    order = np.argsort(embedded.image_labels, kind="stable")
    ordered = embedded.image_labels[order]
    own = rng.permutation(len(texts))[:_PAIRS]
    labels = embedded.text_labels[own]
    first = np.searchsorted(ordered, labels, side="left")
    counts = np.searchsorted(ordered, labels, side="right") - first
    own, first, counts = (x[counts > 0] for x in (own, first, counts))
    partner = order[first + (rng.random(len(own)) * counts).astype(int)]
    return {
        "matched": _dots(images[partner], texts[own]),
        "unmatched": _dots(images[left[apart]], texts[right[apart]]),
    }


def _dots(x, z):
    return np.einsum("nd,nd->n", x, z)


def similarities_plot(found: dict[str, np.ndarray]) -> str:
    """How well similarity tells matched pairs from unmatched ones."""
    with plot("Similarities of matched and unmatched pairs") as drawing:
        _histograms(drawing.axes, found, (COLORS[2], COLORS[5]))
        drawing.axes.set(xlabel="Cosine similarity")
    return drawing.svg


def recall_by_length(
    captions: Sequence[str], found: Ranks, ks: Sequence[int], num_bins: int = 5
) -> list[dict]:
    """R@K from text to image for captions of like length.

    Returns:
        For each range of lengths with captions: its `words`, from and to, how
        many `captions` it has, and `r1`, ...
    """
    lengths = np.array([len(captions[i].split()) for i in found.queries])
    starts = np.unique(lengths)
    if len(starts) > num_bins:
        shares = np.linspace(0, 1, num_bins, endpoint=False)
        starts = np.unique(np.quantile(lengths, shares).astype(int))
    bins = np.searchsorted(starts, lengths, side="right")
    rows = []
    for number in np.unique(bins):
        own = bins == number
        rows.append(
            {
                "words": [int(lengths[own].min()), int(lengths[own].max())],
                "captions": int(own.sum()),
                **{f"r{k}": float(hits_at_k(found, k)[own].mean()) for k in ks},
            }
        )
    return rows


def length_plot(rows: Sequence[dict], ks: Sequence[int]) -> str:
    """Recall by caption length."""
    names = []
    for row in rows:
        low, high = row["words"]
        words = f"{low}" if low == high else f"{low}–{high}"
        names.append(f"{words}\n({row['captions']})")
    with plot("Text-to-image recall by caption length") as drawing:
        for k, color in zip(ks, COLORS * len(ks)):
            values = [100 * row[f"r{k}"] for row in rows]
            drawing.axes.plot(
                names, values, marker="o", color=color, label=f"R@{k}"
            )
        drawing.axes.set(
            xlabel="Words (captions)", ylabel="Recall (%)", ylim=(0, 103)
        )
        drawing.axes.grid(True)
        legend_above(drawing.axes, columns=len(ks))
    return drawing.svg


def _histograms(axes, values, colors):
    low = min(float(own.min()) for own in values.values() if len(own))
    high = max(float(own.max()) for own in values.values() if len(own))
    edges = np.linspace(low, max(high, low + 1e-6), 61)
    for (name, own), color in zip(values.items(), colors):
        if len(own):
            shares = np.histogram(own, edges)[0] / len(own)
            axes.stairs(
                100 * shares, edges, fill=True, alpha=0.45, color=color,
                label=f"{name}, mean {own.mean():.2g}",
            )  # fmt: skip
    axes.set_ylabel("Share (%)")
    legend_above(axes, columns=2)
