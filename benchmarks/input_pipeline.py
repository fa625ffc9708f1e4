"""Images per second of `model.batches`, beside other ways to feed a model.

    python benchmarks/input_pipeline.py --data-dir flickr8k/ [--rounds 3]

Every way shows the training split's images, decoded and resized, in batches
of the same size and in random order. The bare loop is `tf.data` that does
nothing else: what TensorFlow can do at most. `model.batches` also pads
captions, brings labels along and looks out for broken files; it shows each
image once, with all its captions, in a further row mirrored; in another each
image comes with one caption, and as many are shown of the longer epoch.
PyTorch's DataLoader opens and resizes with PIL and gives the captions as they
are. Ways take turns, and the best of the rounds counts, as other work on the
machine only ever slows them down. CPU time, which it slows down less, is that
of this process, without PyTorch's own.
"""

import argparse
import os
import time
from functools import partial

import numpy as np
import tensorflow as tf

import kmatch
from kmatch.data.batching import batches


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", required=True, help="Flickr8K's folder")
    parser.add_argument("--image-size", type=int, nargs="+", default=[224, 64])
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--images", type=int, default=6000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    split = first(
        kmatch.data.load("flickr8k", arguments.data_dir).train,
        arguments.images,
    )
    for image_size in arguments.image_size:
        compare(split, image_size, arguments.batch_size, arguments.rounds)


def first(split, count):
    kept = np.flatnonzero(split.caption_image < count)
    return kmatch.data.CaptionedImages(
        split.images[:count],
        [split.captions[i] for i in kept],
        split.caption_image[kept],
    )


def compare(split, image_size, batch_size, rounds):
    ways = {
        name: way
        for name, make in WAYS.items()
        if (way := make(split, image_size, batch_size)) is not None
    }
    rates = {name: 0.0 for name in ways}
    costs = {name: np.inf for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            start, used = time.perf_counter(), time.process_time()
            shown = sum(way())
            assert 0 <= len(split.images) - shown < batch_size, (name, shown)
            rate = shown / (time.perf_counter() - start)
            rates[name] = max(rates[name], rate)
            cost = (time.process_time() - used) / shown * 1000
            costs[name] = min(costs[name], cost)
    print(
        f"\n{len(split.images)} images to {image_size} px, batches of "
        f"{batch_size}, {os.cpu_count()} cores, best of {rounds}\n"
    )
    print("| | images/s | of the bare loop | CPU ms/image |")
    print("|---|---|---|---|")
    for name, rate in rates.items():
        cost = "" if name == TORCH else f"{costs[name]:.2f}"
        print(f"| {name} | {rate:.0f} | {rate / rates[BARE]:.2f} | {cost} |")


def bare_loop(split, image_size, batch_size):
    """Decodes and resizes, and nothing else."""

    def load(path):
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        return tf.image.resize(image, [image_size, image_size])

    dataset = (
        tf.data.Dataset.from_tensor_slices(split.images)
        .shuffle(len(split.images))
        .map(load, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(batch_size)
        .prefetch(tf.data.AUTOTUNE)
    )
    return lambda: (len(images) for images in dataset)


def kmatch_batches(
    split, image_size, batch_size, augment=None, captions_per_image=None
):
    """What `model.batches` returns, by default with all captions."""
    tokenizer = kmatch.text.Tokenizer.fit(split.captions)
    most = int(np.bincount(split.caption_image).max())
    dataset = batches(
        split, tokenizer, image_size, batch_size, captions_per_image or most,
        shuffle=True, augment=augment, seed=0,
    )  # fmt: skip
    if captions_per_image:
        dataset = dataset.take(len(split.images) // batch_size)
    return lambda: (len(x["image"]) for x, _ in dataset)


def torch_loader(split, image_size, batch_size):
    """PyTorch's DataLoader with a process per core, images by PIL."""
    try:
        import PIL.Image  # noqa: F401
        import torch
    except ImportError:
        print("Without PyTorch: pip install torch pillow")
        return None

    def collate(rows):
        images, captions = zip(*rows)
        return torch.from_numpy(np.stack(images)).float(), captions

    loader = torch.utils.data.DataLoader(
        Photos(split, image_size), batch_size, shuffle=True,
        num_workers=os.cpu_count(), collate_fn=collate,
        persistent_workers=True,
    )  # fmt: skip
    for _ in loader:  # starts its processes, which stay
        pass
    return lambda: (len(images) for images, _ in loader)


class Photos:
    """What PyTorch takes as a data set."""

    def __init__(self, split, image_size):
        self.images, self.size = split.images, [image_size, image_size]
        self.captions = [[] for _ in split.images]
        for image, caption in zip(split.caption_image, split.captions):
            self.captions[image].append(caption)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        from PIL import Image

        with Image.open(self.images[index]) as file:
            image = file.convert("RGB").resize(self.size, Image.BILINEAR)
        return np.asarray(image), self.captions[index]


BARE = "bare tf.data loop"
TORCH = "PyTorch DataLoader, PIL"
WAYS = {
    BARE: bare_loop,
    "kmatch, model.batches": kmatch_batches,
    'kmatch, augment="flip"': partial(kmatch_batches, augment="flip"),
    "kmatch, captions_per_image=1": partial(
        kmatch_batches, captions_per_image=1
    ),
    TORCH: torch_loader,
}

if __name__ == "__main__":
    main()
