"""Write a data set's images and captions into records, each image once."""

import argparse
import logging
from pathlib import Path

import keras

from kmatch import data
from kmatch.data.records import prepare


def add_arguments(parser: argparse.ArgumentParser):
    parser.add_argument("name", choices=data.NAMES)
    parser.add_argument("--root", help="folder of the data set")
    parser.add_argument("--out", required=True, help="folder for the records")
    parser.add_argument(
        "--image-size",
        type=int,
        help="shrink images whose shorter side is longer; default: keep files",
    )
    parser.add_argument(
        "--restval",
        action="store_true",
        help="for coco: join the split of that name to the training split",
    )
    parser.add_argument(
        "--split",
        metavar="DIR",
        help="for flickr30k: folder of train.txt, val.txt and test.txt",
    )


def run(arguments: argparse.Namespace):
    options = {"restval": arguments.restval, "split": arguments.split}
    options = {name: value for name, value in options.items() if value}
    reported = _Collect()
    logger = logging.getLogger("kmatch")
    logger.addHandler(reported)
    try:
        splits = data.load(arguments.name, arguments.root, **options)
    finally:
        logger.removeHandler(reported)
    total = sum(len(split.images) for split in splits)
    bar = keras.utils.Progbar(total, unit_name="image")
    unreadable, num_shards = [], 0
    for shard in prepare(
        arguments.name,
        splits,
        arguments.out,
        arguments.image_size,
        arguments.root,
        options,
    ):
        bar.add(shard.num_images)
        unreadable.extend(shard.unreadable)
        num_shards += 1
    _summarize(splits, num_shards, unreadable, reported.messages, arguments.out)


class _Collect(logging.Handler):
    """Keeps what is said while the data set is loaded, for the summary."""

    def __init__(self):
        super().__init__()
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


def _summarize(splits, num_shards, unreadable, messages, directory):
    for name, split in splits._asdict().items():
        print(
            f"{name}: {len(split.images)} images, {len(split.captions)} "
            "captions"
        )
    for message in messages:
        print(message)
    print(f"{len(unreadable)} unreadable images, kept as they are", end="")
    print(f": {', '.join(unreadable)}." if unreadable else ".")
    print(f"{num_shards} shards in {Path(directory)}")
