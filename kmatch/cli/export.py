"""Export a saved model for TF Serving."""

import argparse

import keras

from kmatch.serving import export


def add_arguments(parser: argparse.ArgumentParser):
    parser.add_argument("model", help="a .keras file")
    parser.add_argument("directory", help="folder of the exported versions")


def run(arguments: argparse.Namespace):
    model = keras.models.load_model(arguments.model)
    print(export(model, arguments.directory))
