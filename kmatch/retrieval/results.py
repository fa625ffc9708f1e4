"""The report of an evaluation, and the comparison of two."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from kmatch.data.captioned import CaptionedImages
from kmatch.retrieval.bootstrap import (
    Difference,
    Interval,
    differences,
    intervals,
    mean_metrics,
)
from kmatch.retrieval.measures import Measured
from kmatch.retrieval.protocols import DIRECTIONS, Embedded, columns


class Report(Mapping):
    """Retrieval metrics, as fractions; prints as the papers' table.

    `kmatch.evaluate` makes it.

    Args:
        folds: What was measured in each gallery.
        embedded: The embeddings and labels.
        ks: The K of its R@K.
        protocol: How it was measured.
        split: The images and captions, if known, to show on the page.
        readable: Of the split, the indices of the images that were read and
            of their captions.

    >>> import kmatch
    >>> x = [[1.0, 0.0], [0.0, 1.0]]
    >>> report = kmatch.evaluate((x, x), labels=([0, 1], [0, 1]), ks=(1,))
    >>> report["i2t_r1"]
    1.0
    >>> print(report.table({}, confidence=None))
    2 images, 2 captions      Image-to-Text   Text-to-Image
                                        R@1             R@1
    kmatch                            100.0           100.0
    """

    def __init__(
        self,
        folds: Sequence[Measured],
        embedded: Embedded,
        ks: Sequence[int],
        protocol: str = "all",
        split: CaptionedImages | None = None,
        readable: tuple[np.ndarray, np.ndarray] | None = None,
    ):
        self._metrics = mean_metrics(folds)
        self._intervals = {}
        self.folds = tuple(folds)
        self.embedded = embedded
        self.ks = tuple(ks)
        self.protocol = protocol
        self.split = split
        self.readable = readable

    @property
    def num_images(self) -> int:
        """Number of images that were read."""
        return len(self.embedded.images)

    @property
    def num_captions(self) -> int:
        """Number of their captions."""
        return len(self.embedded.texts)

    def __getitem__(self, name: str) -> float:
        return self._metrics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)

    def __repr__(self):
        return f"Report({self._metrics})"

    def __str__(self):
        return self.table({})

    def intervals(self, confidence: float = 0.95) -> dict[str, Interval]:
        """Confidence intervals of all metrics, by bootstrap.

        Images are resampled with their captions, or whatever else shares a
        label, 2000 times, and the spread goes into Wilson's score interval;
        those of medians hold the middle part of what was drawn. Mean ranks
        hang on a few queries: with a hundred labels or fewer, their intervals
        are somewhat too narrow.

        Args:
            confidence: How many of such intervals cover the true figure.

        >>> import kmatch
        >>> import numpy as np
        >>> x = np.eye(50)
        >>> labels = np.arange(50)
        >>> report = kmatch.evaluate((x, x), labels=(labels, labels))
        >>> low, high = report.intervals()["t2i_r1"]
        >>> 0.9 < low < high == 1.0
        True
        """
        if confidence not in self._intervals:
            self._intervals[confidence] = intervals(self.folds, confidence)
        return self._intervals[confidence]

    def compare(self, other: "Report") -> "Comparison":
        """Tests whether two models differ, on the same queries.

        Args:
            other: Another model's report on the same data.

        Returns:
            For each metric the difference, its 95 % interval and the p-value
            of a permutation test in which the models change places for whole
            images with their captions.

        >>> import kmatch
        >>> import numpy as np
        >>> x, labels = np.eye(60), np.arange(60)
        >>> good = kmatch.evaluate((x, x), labels=(labels, labels))
        >>> bad = kmatch.evaluate((x, x[::-1]), labels=(labels, labels))
        >>> good.compare(bad)["t2i_r1"].real
        True
        >>> good.compare(good)["t2i_r1"].real
        False
        """
        _check_same_queries(self, other)
        return Comparison(
            differences(self.folds, other.folds), self.protocol, self.ks
        )

    def save(
        self,
        directory: str | os.PathLike,
        others: Mapping[str, Mapping[str, float]] | None = None,
        history=None,
        title: str = "Retrieval report",
    ) -> Path:
        """Writes `index.html`, one page with everything, and `metrics.json`.

        The page holds its images and plots and fetches nothing. It needs
        matplotlib and scikit-learn: `pip install "kmatch[report]"`.

        Args:
            directory: Where to write them.
            others: Rows to stand beside in the table, such as a paper's.
            history: For the training curves: what `fit` returned,
                `Checkpoint.history()`, or the path of a `history.json`.
            title: The page's heading.

        Returns:
            The path of the page.
        """
        # The page is drawn from the report, and so stands to its right; only
        # this door opens to the left.
        from kmatch.report import save

        return save(self, directory, others or {}, history, title)

    def table(
        self,
        others: Mapping[str, Mapping[str, float]],
        confidence: float | None = 0.95,
    ) -> str:
        """Returns the metrics in percent, with others' rows to compare.

        Args:
            others: By name, metrics as fractions; missing ones show as "-".
            confidence: Of the intervals, half of whose width stands below
                the figures; None for none.
        """
        shown = columns(self.protocol, self.ks)
        size = f"{self.num_images} images, {self.num_captions} captions"
        if len(self.folds) > 1:
            size += f", {len(self.folds)} folds"
        rows = {"kmatch": _percent(self)}
        if confidence is not None:
            ranges = self.intervals(confidence)
            rows[f"  {confidence * 100:g} % interval"] = {
                name: f"±{(x.high - x.low) * 50:.1f}"
                for name, x in ranges.items()
            }
        rows.update({name: _percent(row) for name, row in others.items()})
        names = max(map(len, [size, *rows])) + 3
        longest = max(len(x) for own in shown.values() for x in own.values())
        cell = max(6, longest + 1)
        width = max(cell * len(self.ks), len(DIRECTIONS["i2t"])) + 3
        lines = [size.ljust(names), "".ljust(names)]
        for direction, titles in shown.items():
            lines[0] += DIRECTIONS[direction].rjust(width)
            lines[1] += _cells(titles.values(), cell, width)
        for name, row in rows.items():
            line = name.ljust(names)
            for titles in shown.values():
                own = [row.get(key, "-") for key in titles]
                line += _cells(own, cell, width)
            lines.append(line)
        return "\n".join(lines)


class Comparison(Mapping):
    """By metric, how much two models differ; prints as a table."""

    def __init__(
        self,
        found: Mapping[str, Difference],
        protocol: str,
        ks: Sequence[int],
    ):
        self._found = dict(found)
        self._shown = {
            key: f"{DIRECTIONS[direction]} {title}"
            for direction, titles in columns(protocol, ks).items()
            for key, title in titles.items()
        }

    def __getitem__(self, name: str) -> Difference:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self):
        return f"Comparison({self._found})"

    def __str__(self):
        lines = [
            f"{'':22}{'this':>7}{'other':>7}{'difference':>12}"
            f"{'95 % interval':>18}{'p':>8}"
        ]
        for key, title in self._shown.items():
            own = self._found[key]
            low, high = (f"{100 * bound:+.1f}" for bound in own.interval)
            lines.append(
                f"{title:22}{100 * own.this:7.1f}{100 * own.other:7.1f}"
                f"{100 * own.value:+12.1f}{f'{low} to {high}':>18}"
                f"{own.p_value:8.4f}  {'real' if own.real else 'may be chance'}"
            )
        return "\n".join(lines)


def _percent(row):
    return {name: f"{value * 100:.1f}" for name, value in row.items()}


def _cells(texts, cell, width):
    return "".join(text.rjust(cell) for text in texts).rjust(width)


def _check_same_queries(this, other):
    if not isinstance(other, Report):
        raise ValueError(
            "compare takes the report of another evaluation. "
            f"Received: {type(other).__name__}."
        )
    for what, left, right in (
        ("protocol", this.protocol, other.protocol),
        ("ks", this.ks, other.ks),
        ("metrics", tuple(this), tuple(other)),
    ):
        if left != right:
            raise ValueError(
                f"Reports compare with the same {what}. Received "
                f"{left} and {right}."
            )
    same = all(
        np.array_equal(
            getattr(this.embedded, side), getattr(other.embedded, side)
        )
        for side in ("image_labels", "text_labels")
    )
    if this.split is not None and other.split is not None:
        same = same and this.split.captions == other.split.captions
    if not same:
        raise ValueError(
            "Reports compare on the same queries. Received "
            f"{this.num_images} images with {this.num_captions} captions, and "
            f"{other.num_images} with {other.num_captions}, which differ in "
            "number, order, labels or text. Evaluate both models on one "
            "split with the same options."
        )
