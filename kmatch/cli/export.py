"""Export a saved model for TF Serving."""

import argparse

from kmatch.cli.models import load_matcher
from kmatch.serving import export


def add_arguments(parser: argparse.ArgumentParser):
    parser.add_argument("model", help="a .keras file")
    parser.add_argument("directory", help="folder of the exported versions")


def run(arguments: argparse.Namespace):
    print(export(load_matcher(arguments.model), arguments.directory))
