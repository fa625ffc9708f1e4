"""Measure retrieval with a saved or an exported model."""

import argparse
from pathlib import Path

from kmatch import data, report
from kmatch.callbacks.checkpoint import HISTORY
from kmatch.cli.models import load_matcher
from kmatch.retrieval import PROTOCOLS, evaluate, published


def add_arguments(parser: argparse.ArgumentParser):
    add = parser.add_argument
    add("model", help="folder of an exported model, or a .keras file")
    add("--data", default="shapes", choices=data.NAMES)
    add("--root", help="folder of the data set")
    add("--split", default="test", choices=data.Splits._fields)
    add(
        "--protocol",
        default="all",
        choices=PROTOCOLS,
        help="who searches among whom; default: %(default)s",
    )
    add(
        "--ks",
        nargs="+",
        type=int,
        default=(1, 5, 10),
        metavar="K",
        help="the K of R@K; default: 1 5 10",
    )
    add("--report", metavar="DIR", help="write a page with everything to DIR")
    add(
        "--history",
        help="history.json for the page's training curves; default: that of "
        "the model's own checkpoint folder, if it has one",
    )


def run(arguments: argparse.Namespace):
    if arguments.history and not arguments.report:
        raise ValueError("--history is for the page: pass --report too.")
    history = arguments.history or _own_history(Path(arguments.model))
    if arguments.report:  # what would fail after the evaluation fails now
        report.check_folder(arguments.report)
        history = report.read_history(history)
    split = getattr(data.load(arguments.data, arguments.root), arguments.split)
    model = arguments.model
    if model.endswith(".keras"):
        model = load_matcher(model)
    found = evaluate(model, split, ks=arguments.ks, protocol=arguments.protocol)
    others = published(arguments.data, arguments.protocol)
    print(found.table(others))
    if arguments.report:
        page = found.save(
            arguments.report,
            others=others,
            history=history,
            title=f"{Path(arguments.model).stem} on {arguments.data}",
        )
        print(f"Report: {page}")


def _own_history(model):
    """Where a recipe, or a `Checkpoint`, leaves its history."""
    for folder in model / "checkpoint", model.parent:
        if (folder / HISTORY).is_file():
            return folder / HISTORY
    return None
