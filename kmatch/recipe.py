"""What the recipes share: their command line, data and first weights."""

import argparse
import os
from collections.abc import Callable

import keras

from kmatch import data
from kmatch.callbacks import Checkpoint
from kmatch.matchers import Matcher
from kmatch.towers import Tower


def arguments(description: str, output: str) -> argparse.Namespace:
    """Reads the command line that all recipes understand.

    Args:
        description: The recipe's docstring.
        output: Default folder of the exported model.
    """
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--data-dir", help="folder of the data set; default: embedded data")
    add("--epochs", type=int, help="default: the recipe's")
    add("--batch-size", type=int, help="images per step; default: the recipe's")
    add("--image-weights", help="weights file for the image tower, without top")
    add("--output", default=output, help="default: %(default)s")
    add("--seed", type=int, default=0, help="default: %(default)s")
    add(
        "--resume",
        action="store_true",
        help="go on with an interrupted run of the same output",
    )
    return parser.parse_args()


def load_data(
    name: str, root: str | os.PathLike | None, files: str
) -> data.Splits:
    """Loads the data set, or without a folder the embedded one.

    Args:
        name: As `kmatch.data.load` knows it.
        root: Its folder, or None.
        files: What the folder holds, for the message.
    """
    if root is not None:
        return data.load(name, root)
    print(
        "Training on the embedded data set 'shapes'; for the real one, pass "
        f"--data-dir with {files}."
    )
    return data.load("shapes")


def pretrained(tower: Callable[..., Tower], weights: str | None) -> Tower:
    """Builds an image tower from a file, else from Keras's ImageNet weights.

    Where these cannot be fetched, it says so and starts from random weights.
    """
    try:
        return tower(weights=weights or "imagenet")
    except ConnectionError as error:
        print(f"THE IMAGE TOWER STARTS FROM RANDOM WEIGHTS. {error}")
        return tower(weights=None)


def resume_or_build(
    checkpoint: Checkpoint, resume: bool, build: Callable[[], Matcher]
) -> Matcher:
    """Loads the last checkpoint if asked to, or builds a new model."""
    if not resume:
        checkpoint.clear()
        return build()
    model = checkpoint.last()
    if model is None:
        print(f"Nothing to resume in {checkpoint.directory}: starting anew.")
        return build()
    print(f"Resuming after epoch {model.epochs_trained}.")
    return model


def seed(number: int):
    """Makes a run repeatable: weights, dropout, and the order of the data."""
    keras.utils.set_random_seed(number)
