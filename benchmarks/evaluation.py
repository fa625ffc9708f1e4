"""Time and memory of retrieval evaluation, beside other ways to do it.

    python benchmarks/evaluation.py [--images 1000 5000] [--rounds 3]

Every way gets the same unit embeddings and measures R@1, R@5 and R@10 in both
directions; kmatch does so from the ranks of all that is relevant, and once
more with all its metrics. Times are the best of some rounds in which the ways
take turns. All must find the same R@K. Needs Linux, whose
kernel says how much memory was in use at most.
"""

import argparse
import ctypes
import importlib
import os
import re
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

import kmatch

KS = (1, 5, 10)
CAPTIONS = 5
DIM = 512


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--patience",
        type=float,
        default=300,
        help="leave out what would take more seconds, by the case before",
    )
    arguments = parser.parse_args()
    ways = available(WAYS)
    expected = dict.fromkeys(ways, 0)
    for num_images in sorted(arguments.images):
        for name in [n for n in ways if expected[n] > arguments.patience]:
            print(f"\nWithout {name}: {expected[name]:.0f} seconds expected")
            del ways[name]
        seconds = compare(ways, num_images, arguments.rounds)
        growth = (max(arguments.images) / num_images) ** 2
        expected = {name: own * growth for name, own in seconds.items()}


def available(ways):
    """Leaves out, and names, the ways whose package is not installed."""
    found = {}
    for name, (way, package, install) in ways.items():
        try:
            importlib.import_module(package)
            found[name] = way
        except ImportError:
            print(f"Without {name}: pip install {install}")
    return found


def compare(ways, num_images, rounds):
    images, texts, labels = embeddings(num_images)
    seconds = {name: [] for name in ways}
    memory, results = {}, {}
    for turn in range(rounds):
        for name, way in ways.items():
            if turn and seconds[name][0] > 20:
                continue
            before = reset_peak_memory()
            start = time.perf_counter()
            results[name] = way(images, texts, *labels)
            seconds[name].append(time.perf_counter() - start)
            memory[name] = max(memory.get(name, 0), peak_memory() - before)
    seconds = {name: min(own) for name, own in seconds.items()}
    check(results, num_images)
    report(num_images, seconds, memory)
    return seconds


def embeddings(num_images):
    """Captions scattered around their images, so that many are found."""
    rng = np.random.default_rng(0)
    images = rng.normal(size=[num_images, DIM])
    image_labels = np.arange(num_images)
    text_labels = np.repeat(image_labels, CAPTIONS)
    texts = images[text_labels] + rng.normal(
        scale=6, size=[len(text_labels), DIM]
    )
    return unit(images), unit(texts), (image_labels, text_labels)


def unit(x):
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype("float32")


def both_ways(recalls, images, texts, image_labels, text_labels):
    return {
        **recalls("i2t", images, texts, image_labels, text_labels),
        **recalls("t2i", texts, images, text_labels, image_labels),
    }


def fastest_product(images, texts, image_labels, text_labels):
    """The same with the library that kmatch uses; no evaluation either."""
    tf.matmul(images, texts, transpose_b=True)
    return {}


def one_product(images, texts, image_labels, text_labels):
    """No evaluation at all: what the scores alone cost, for both ways."""
    images @ texts.T
    return {}


def two_products(images, texts, image_labels, text_labels):
    """The same, with a product for each way."""
    images @ texts.T
    texts @ images.T
    return {}


def kmatch_recalls(*arguments):
    """R@K alone, from exact ranks."""
    i2t, t2i = kmatch.retrieval.ranks_both_ways(*arguments)
    return {
        f"{direction}_r{k}": np.mean(found.first <= k)
        for direction, found in (("i2t", i2t), ("t2i", t2i))
        for k in KS
    }


def argsort(*arguments):
    """The common evaluation: one product and one argsort per query."""

    def recalls(direction, queries, gallery, query_labels, gallery_labels):
        first = []
        for query, label in zip(queries, query_labels):
            order = np.argsort(-(gallery @ query))
            first.append(np.argmax(gallery_labels[order] == label))
        first = np.array(first)
        return {f"{direction}_r{k}": np.mean(first < k) for k in KS}

    return both_ways(recalls, *arguments)


def faiss_search(*arguments):
    import faiss

    def recalls(direction, queries, gallery, query_labels, gallery_labels):
        index = faiss.IndexFlatIP(gallery.shape[1])
        index.add(gallery)
        _, nearest = index.search(queries, max(KS))
        hits = gallery_labels[nearest] == query_labels[:, None]
        return {
            f"{direction}_r{k}": np.mean(hits[:, :k].any(axis=1)) for k in KS
        }

    return both_ways(recalls, *arguments)


def torchmetrics_functions(*arguments):
    """Hit rate and average precision, query by query.

    Its metric objects take every score with its query in one flat tensor,
    which for 5,000 images and 25,000 captions would be gigabytes.
    """
    import torch
    from torchmetrics.functional.retrieval import (
        retrieval_average_precision,
        retrieval_hit_rate,
    )

    def recalls(direction, queries, gallery, query_labels, gallery_labels):
        queries, gallery, query_labels, gallery_labels = map(
            torch.from_numpy, [queries, gallery, query_labels, gallery_labels]
        )
        hits, precisions = {k: [] for k in KS}, []
        for query, label in zip(queries, query_labels):
            scores, relevant = gallery @ query, gallery_labels == label
            for k in KS:
                hits[k].append(retrieval_hit_rate(scores, relevant, top_k=k))
            precisions.append(retrieval_average_precision(scores, relevant))
        return {
            **{f"{direction}_r{k}": np.mean(hits[k]) for k in KS},
            f"{direction}_map": np.mean(precisions),
        }

    return both_ways(recalls, *arguments)


# What to call, the package it needs, and how to install that.
WAYS = {
    "bare product": (one_product, "numpy", "numpy"),
    "with TensorFlow": (fastest_product, "tensorflow", "tensorflow"),
    "one for each way": (two_products, "numpy", "numpy"),
    "kmatch, R@K": (kmatch_recalls, "kmatch", "kmatch"),
    "kmatch": (kmatch.retrieval.metrics, "kmatch", "kmatch"),
    "faiss, k = 10": (faiss_search, "faiss", "faiss-cpu"),
    "argsort per query": (argsort, "numpy", "numpy"),
    "torchmetrics": (
        torchmetrics_functions,
        "torchmetrics",
        "torch torchmetrics",
    ),
}


def check(results, num_images):
    """Products of other kernels round differently: one query may move."""
    ours = results["kmatch"]
    for name, theirs in results.items():
        for key, value in theirs.items():
            assert abs(value - ours[key]) <= 1 / num_images, (
                f"{key} is {ours[key]} with kmatch, {value} with {name}."
            )


def report(num_images, seconds, memory):
    num_captions = num_images * CAPTIONS
    print(
        f"\n{num_images} images x {num_captions} captions, {DIM} dims, "
        f"{os.cpu_count()} cores\n"
    )
    print("| | seconds | of bare product | of kmatch | MB at peak |")
    print("|---|---|---|---|---|")
    for name, own in seconds.items():
        print(
            f"| {name} | {own:.2f} | {own / seconds['bare product']:.2f} "
            f"| {own / seconds['kmatch']:.2f} | {memory[name]:.0f} |"
        )


def reset_peak_memory():
    """Returns what this process holds, in MB."""
    ctypes.CDLL(None).malloc_trim(0)  # freed memory would hide new memory
    Path("/proc/self/clear_refs").write_text("5")
    return peak_memory()


def peak_memory():
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+)", status)[1]) / 1024


if __name__ == "__main__":
    main()
