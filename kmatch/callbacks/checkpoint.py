"""Checkpoints that a training can go on from."""

import json
import math
import os
import shutil
from pathlib import Path

import keras

from kmatch.matchers.matcher import Matcher

LAST, BEST, HISTORY = FILES = "last.keras", "best.keras", "history.json"


class Checkpoint(keras.callbacks.Callback):
    """Saves the model after every epoch, and the best one beside it.

    The folder holds `last.keras`, `best.keras` and `history.json`. Each file
    is replaced in one step, so that a training that is killed loses at most
    the epoch it was in:

    ```python
    checkpoint = kmatch.callbacks.Checkpoint("run")
    model = checkpoint.last() or build()
    model.fit(
        …, initial_epoch=model.epochs_trained,
        callbacks=[kmatch.callbacks.RecallAtK(data.val), checkpoint],
    )
    model = checkpoint.best()
    ```

    Args:
        directory: Where the files go.
        monitor: What makes an epoch better: a name in the logs; larger is
            better.

    >>> import tempfile
    >>> import kmatch
    >>> checkpoint = kmatch.callbacks.Checkpoint(tempfile.mkdtemp())
    >>> checkpoint.last() is None
    True
    """

    def __init__(self, directory: str | os.PathLike, monitor: str = "val_rsum"):
        super().__init__()
        self.directory = Path(directory)
        self.monitor = monitor

    def last(self) -> Matcher | None:
        """The model after the last whole epoch; None before the first."""
        return self._load(LAST)

    def best(self) -> Matcher | None:
        """The model after the best epoch; None before the first."""
        return self._load(BEST)

    def history(self) -> list[dict]:
        """The logs of all epochs so far."""
        path = self.directory / HISTORY
        return json.loads(path.read_text()) if path.exists() else []

    def clear(self):
        """Forgets an earlier training."""
        for name in FILES:
            (self.directory / name).unlink(missing_ok=True)

    def on_epoch_end(self, epoch, logs=None):
        logs = {name: float(value) for name, value in (logs or {}).items()}
        if self.monitor not in logs:
            raise ValueError(
                f"Checkpoint compares epochs by '{self.monitor}', which is "
                f"not in the logs ({', '.join(logs)}). Put RecallAtK before "
                "it, or pass another monitor."
            )
        # Epochs after the one gone on from were lost with their process.
        history = self.history()[: self.model.epochs_trained - 1]
        best = max((past[self.monitor] for past in history), default=-math.inf)
        self.directory.mkdir(parents=True, exist_ok=True)
        saved = self.directory / f".{LAST}"
        self.model.save(saved)
        # The best first and the last one last: a kill in between repeats
        # this epoch and leaves nothing out.
        if logs[self.monitor] > best:
            self._replace(BEST, lambda path: shutil.copyfile(saved, path))
        self._replace(
            HISTORY,
            lambda path: path.write_text(json.dumps([*history, logs])),
        )
        os.replace(saved, self.directory / LAST)

    def _replace(self, name, write):
        temporary = self.directory / f".{name}"
        write(temporary)
        os.replace(temporary, self.directory / name)

    def _load(self, name):
        path = self.directory / name
        return keras.models.load_model(path) if path.exists() else None
