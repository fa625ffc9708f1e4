"""Measure retrieval with a saved or an exported model."""

import argparse

import keras

from kmatch import data
from kmatch.retrieval import evaluate


def add_arguments(parser: argparse.ArgumentParser):
    parser.add_argument(
        "model", help="folder of an exported model, or a .keras file"
    )
    parser.add_argument("--data", default="shapes", choices=data.NAMES)
    parser.add_argument("--root", help="folder of the data set")
    parser.add_argument("--split", default="test", choices=data.Splits._fields)


def run(arguments: argparse.Namespace):
    split = getattr(data.load(arguments.data, arguments.root), arguments.split)
    model = arguments.model
    if model.endswith(".keras"):
        model = keras.models.load_model(model)
    print(evaluate(model, split))
