"""Recall@K at the end of every epoch."""

from collections.abc import Sequence

import keras

from kmatch.data.captioned import CaptionedImages
from kmatch.retrieval.evaluation import encode_split, report_left_out
from kmatch.retrieval.measures import metrics


class RecallAtK(keras.callbacks.Callback):
    """Puts retrieval metrics on a split into the logs of every epoch.

    They are those of `kmatch.retrieval.metrics` behind `val_`, from
    `val_i2t_r1` to `val_rsum`, so that `ModelCheckpoint`, `EarlyStopping`,
    `CSVLogger` and `TensorBoard` can use them: put this callback before
    those. Training is the same with and without it.

    Args:
        split: Usually the validation split; never the test split.
        ks: The K of R@K.

    >>> import kmatch
    >>> data = kmatch.data.load("shapes")
    >>> callback = kmatch.callbacks.RecallAtK(data.val, ks=(1, 5, 10))
    """

    def __init__(self, split: CaptionedImages, ks: Sequence[int] = (1, 5, 10)):
        super().__init__()
        self.split = split
        self.ks = ks
        self._reported = False

    def on_epoch_end(self, epoch, logs=None):
        images, texts, kept = encode_split(
            self.model, self.split, progress=False
        )
        if not self._reported:
            report_left_out(self.split, kept)
            self._reported = True
        measured = metrics(
            images, texts, kept.labels, kept.text_labels, ks=self.ks
        )
        if logs is not None:
            logs.update({f"val_{name}": v for name, v in measured.items()})
