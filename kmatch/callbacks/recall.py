"""Recall@K at the end of every epoch."""

import os
from collections.abc import Sequence

import keras

from kmatch.callbacks.board import Board
from kmatch.data.captioned import CaptionedImages, check_split
from kmatch.retrieval.evaluation import encode_split, report_left_out
from kmatch.retrieval.inputs import checked_ks
from kmatch.retrieval.measures import measure
from kmatch.retrieval.protocols import Embedded


class RecallAtK(keras.callbacks.Callback):
    """Puts retrieval metrics on a split into the logs of every epoch.

    They are those of `kmatch.retrieval.metrics` behind `val_`, from
    `val_i2t_r1` to `val_rsum`, so that `ModelCheckpoint`, `EarlyStopping`,
    `CSVLogger` and `TensorBoard` can use them: put this callback before
    those. Training is the same with and without it.

    Args:
        split: Usually the validation split; never the test split.
        ks: The K of R@K.
        log_dir: Where to write the figures of each epoch, and at the end of
            training a gallery of queries with their first results, for
            TensorBoard: `tensorboard --logdir …`. By default nowhere.

    >>> import kmatch
    >>> data = kmatch.data.load("shapes")
    >>> callback = kmatch.callbacks.RecallAtK(data.val, ks=(1, 5, 10))
    """

    def __init__(
        self,
        split: CaptionedImages,
        ks: Sequence[int] = (1, 5, 10),
        log_dir: str | os.PathLike | None = None,
    ):
        super().__init__()
        check_split(split)
        self.split = split
        self.ks = checked_ks(ks)
        self._board = None if log_dir is None else Board(log_dir)
        self._reported = False

    def on_epoch_end(self, epoch, logs=None):
        images, texts, kept = encode_split(
            self.model, self.split, progress=False
        )
        if not self._reported:
            report_left_out(self.split, kept)
            self._reported = True
        labels = kept.labels, kept.text_labels
        measured = measure(images, texts, *labels, ks=self.ks)
        figures = {f"val_{n}": x for n, x in measured.metrics().items()}
        if logs is not None:
            logs.update(figures)
        if self._board is not None:
            self._board.write_figures(figures, epoch)
            self._board.keep(
                self.split, kept, Embedded(images, texts, *labels), measured
            )

    def on_train_end(self, logs=None):
        if self._board is not None:
            self._board.write_gallery()
