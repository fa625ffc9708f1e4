"""Progress on the terminal: Keras's own bar, shorter."""

import time
from collections.abc import Iterable, Iterator

import keras

# In the logs, but too much for a line.
_LONG = ("_map", "_medr", "_meanr", "_ap50")


class Progress(keras.callbacks.ProgbarLogger):
    """Keras's progress bar without what would only lengthen the line.

    Left out are the less common retrieval metrics, losses that had nothing
    to measure, and what the model has `only_logged`. The logs that other
    callbacks see stay whole.
    """

    def __init__(self):
        super().__init__()
        self._unmeasured = set()

    def _update_progbar(self, batch, logs=None):
        self._unmeasured = self.model.unmeasured()
        super()._update_progbar(batch, self._shown(logs))

    def _finalize_progbar(self, logs):
        super()._finalize_progbar(self._shown(logs))

    def _shown(self, logs):
        # The model's own means are those of the validation, where there was
        # one since the last batch.
        validation = self.model.unmeasured() | self.model.only_logged
        silent = self._unmeasured | self.model.only_logged
        silent |= {f"val_{name}" for name in validation}
        return {
            name: value
            for name, value in (logs or {}).items()
            if name not in silent and not name.endswith(_LONG)
        }


def show_if_long(
    items: Iterable, total: int, show: bool = True, seconds: float = 5.0
) -> Iterator:
    """Yields the items; shows a progress bar once that takes long."""
    bar = None
    start = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        if show and bar is None and time.monotonic() - start > seconds:
            bar = keras.utils.Progbar(total, unit_name="batch")
        if bar is not None:
            bar.update(done)
