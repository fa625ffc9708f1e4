"""Curves: precision against recall, and the course of a training."""

import json
import os
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from kmatch.report.plots import (
    COLORS,
    IMAGE_COLOR,
    TEXT_COLOR,
    legend_above,
    plot,
)
from kmatch.retrieval.measures import precision_recall
from kmatch.retrieval.protocols import DIRECTIONS


def precision_recall_plot(folds: Sequence) -> str:
    """Precision-recall curves of both directions (ITMeetsAL, Fig. 5)."""
    with plot("Precision at each level of recall") as drawing:
        axes = drawing.axes
        for direction, color in ("i2t", IMAGE_COLOR), ("t2i", TEXT_COLOR):
            curves = [
                precision_recall(getattr(fold, direction)) for fold in folds
            ]
            axes.plot(
                curves[0][0],
                np.mean([precision for _, precision in curves], axis=0),
                color=color,
                label=DIRECTIONS[direction],
                marker="o",
                markersize=3.5,
            )
        axes.set(
            xlabel="Recall", ylabel="Precision", xlim=(0, 1), ylim=(0, 1.02)
        )
        axes.grid(True)
        legend_above(axes, columns=2)
    return drawing.svg


def read_history(history) -> list[dict[str, float]]:
    """Returns the logs of each epoch, however they are given.

    Args:
        history: What `fit` returned, its `history`, a list of logs, the path
            of a `history.json` or of the folder it is in, or None.
    """
    if history is None:
        return []
    if isinstance(history, (str, os.PathLike)):
        path = Path(history)
        path = path / "history.json" if path.is_dir() else path
        if not path.is_file():
            raise ValueError(
                f"There is no '{path}'. Pass a folder that "
                "kmatch.callbacks.Checkpoint wrote, or its history.json."
            )
        try:
            history = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            raise ValueError(f"'{path}' holds no history.") from None
    history = getattr(history, "history", history)
    if callable(history):  # a Checkpoint
        history = history()
    try:
        if isinstance(history, Mapping):
            history = _by_epoch(history)
        return [
            {str(name): float(x) for name, x in logs.items()}
            for logs in history
        ]
    except (AttributeError, TypeError, ValueError):
        raise ValueError(
            "`history` must hold the logs of each epoch, by name a number. "
            "Pass what `fit` returned, or the path of a history.json. "
            f"Received: {reprlib.repr(history)}."
        ) from None


def _by_epoch(columns):
    epochs = max(map(len, columns.values()), default=0)
    return [
        {name: own[i] for name, own in columns.items() if i < len(own)}
        for i in range(epochs)
    ]


def losses_plot(history: Sequence[Mapping[str, float]]) -> str:
    """The losses, epoch by epoch."""
    names = [n for n in _names(history) if not n.startswith("val_")]
    with plot("Losses over the epochs") as drawing:
        for name, color in zip(names, COLORS * len(names)):
            _line(drawing.axes, history, name, 1, color=color, label=name)
        _over_epochs(drawing.axes, "Loss", min(len(names), 3))
    return drawing.svg


def recalls_plot(history: Sequence[Mapping[str, float]]) -> str:
    """R@K on the validation split, epoch by epoch; "" if there is none."""
    names = [n for n in _names(history) if _is_recall(n)]
    if not names:
        return ""
    with plot("Validation recall over the epochs") as drawing:
        for direction, color in ("i2t", IMAGE_COLOR), ("t2i", TEXT_COLOR):
            own = [n for n in names if f"_{direction}_" in n]
            for i, name in enumerate(own):
                _line(
                    drawing.axes, history, name, 100,
                    color=color, alpha=1 - 0.6 * i / max(len(own), 2),
                    label=f"{direction} R@{name.rpartition('_r')[2]}",
                )  # fmt: skip
        _over_epochs(drawing.axes, "Recall (%)", 2)
    return drawing.svg


def _names(history):
    return dict.fromkeys(name for logs in history for name in logs)


def _over_epochs(axes, title, columns):
    axes.set(xlabel="Epoch", ylabel=title)
    axes.grid(True)
    axes.xaxis.get_major_locator().set_params(integer=True)
    legend_above(axes, columns)


def _is_recall(name):
    parts = name.split("_r")
    return (
        name.startswith(("val_i2t_r", "val_t2i_r"))
        and len(parts) == 2
        and parts[1].isdigit()
    )


def _line(axes, history, name, factor, **style):
    epochs = [i for i, logs in enumerate(history, 1) if name in logs]
    values = [factor * history[i - 1][name] for i in epochs]
    marker = "o" if len(epochs) < 30 else None
    axes.plot(epochs, values, marker=marker, markersize=3, **style)
