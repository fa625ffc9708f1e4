"""The page: one HTML file that holds everything it shows."""

import importlib.util
import json
import math
import os
import tempfile
from collections.abc import Mapping
from html import escape
from pathlib import Path

from kmatch.report import curves, diagnostics, galleries, projection, tables
from kmatch.report.style import STYLE
from kmatch.retrieval.examples import examples
from kmatch.retrieval.protocols import DIRECTIONS
from kmatch.retrieval.ranking import ranks_both_ways
from kmatch.version import __version__

PAGE, METRICS = "index.html", "metrics.json"
FORMAT_VERSION = 1
GALLERIES = {
    "all": "The gallery holds each image once and every caption.",
    "coco-1k": "Means over galleries of 1000 images and their captions each.",
    "class": "Each class has one text, the mean of its captions.",
}


def save(
    report,
    directory: str | os.PathLike,
    others: Mapping[str, Mapping[str, float]],
    history,
    title: str,
) -> Path:
    """Writes a report's page and `metrics.json`; see `Report.save`."""
    check_folder(directory)
    directory = Path(directory)
    history = curves.read_history(history)
    found = _Findings(report)
    page = _page(report, found, others, history, title)
    figures = {
        "format_version": FORMAT_VERSION,
        "kmatch_version": __version__,
        "protocol": report.protocol,
        "num_images": report.num_images,
        "num_captions": report.num_captions,
        "num_folds": len(report.folds),
        "ks": list(report.ks),
        "metrics": dict(report),
        "confidence": 0.95,
        "intervals": {n: list(x) for n, x in report.intervals().items()},
        "diagnostics": found.figures(),
        "history": history,
    }
    # All is made before anything is written, and each file is put in place
    # in one step.
    directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps(_finite(figures), indent=2, allow_nan=False)
    _write(directory / METRICS, text + "\n")
    _write(directory / PAGE, page)
    return directory / PAGE


def check_folder(directory: str | os.PathLike):
    """Refuses what no page can be written to, or if there is none to write."""
    folder = Path(directory).absolute()
    there = next(x for x in (folder, *folder.parents) if x.exists())
    if not there.is_dir():
        raise ValueError(
            f"The report goes into a folder, and '{there}' is a file."
        )
    if not os.access(there, os.W_OK):
        raise ValueError(
            f"The report goes into '{directory}', and '{there}' cannot be "
            "written to."
        )
    missing = [
        package
        for module, package in (
            ("matplotlib", "matplotlib"),
            ("sklearn", "scikit-learn"),
        )
        if importlib.util.find_spec(module) is None
    ]
    if missing:
        raise ImportError(
            f"The report page needs {' and '.join(missing)}: "
            'pip install "kmatch[report]".'
        )


def _finite(value):
    """Puts null for what JSON has no number for."""
    if isinstance(value, Mapping):
        return {name: _finite(own) for name, own in value.items()}
    if isinstance(value, list):
        return [_finite(own) for own in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _write(path, text):
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=".", delete=False
    ) as file:
        try:
            file.write(text)
            file.close()
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


class _Findings:
    """What is found out for the page, each thing once."""

    def __init__(self, report):
        embedded = report.embedded
        # Pictures are of one gallery with all images and all captions.
        self.own_gallery = report.protocol in ("coco-1k", "class")
        if self.own_gallery:
            self.i2t, self.t2i = ranks_both_ways(
                embedded.images, embedded.texts,
                embedded.image_labels, embedded.text_labels,
            )  # fmt: skip
        else:
            self.i2t, self.t2i = report.folds[0].i2t, report.folds[0].t2i
        self.norms = diagnostics.norms(embedded)
        self.unit = diagnostics.are_unit(self.norms)
        self.gap = diagnostics.modality_gap(embedded)
        self.hubs = diagnostics.hubness(embedded)
        self.similarities = diagnostics.similarities(embedded)
        self.lengths = []
        if report.split is not None:
            captions = report.split.captions
            if report.readable is not None:
                captions = [captions[i] for i in report.readable[1]]
            self.lengths = diagnostics.recall_by_length(
                captions, self.t2i, report.ks
            )

    def hub_figures(self):
        queries = {
            "captions": len(self.hubs["images"]),
            "images": len(self.hubs["captions"]),
        }
        return {
            name: diagnostics.hub_figures(counts, queries[name])
            for name, counts in self.hubs.items()
        }

    def figures(self):
        return {
            "mean_norms": None
            if self.unit
            else {name: float(own.mean()) for name, own in self.norms.items()},
            "modality_gap": self.gap,
            "hubness": self.hub_figures(),
            "mean_similarities": {
                name: float(own.mean()) if len(own) else None
                for name, own in self.similarities.items()
            },
            "recall_by_length": self.lengths,
        }


def _page(report, found, others, history, title):
    sections = {
        "Results": _results(report, others),
        "Recall": _recall(report, found),
        "The shared space": _space(report, found),
        "Training": _training(history),
        "Examples": _examples(report, found),
    }
    sections = {name: body for name, body in sections.items() if body}
    links = "".join(
        f'<a href="#{_anchor(name)}">{name}</a>' for name in sections
    )
    body = "\n".join(
        f'<section id="{_anchor(name)}"><h2>{name}</h2>\n{part}\n</section>'
        for name, part in sections.items()
    )
    folds = f", {len(report.folds)} folds" if len(report.folds) > 1 else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p>{report.num_images:,} images, {report.num_captions:,} captions ·
protocol “{report.protocol}”{folds} · kmatch {__version__}</p>
<nav>{links}</nav>
</header>
<main>
{body}
</main>
</body>
</html>
"""


def _anchor(name):
    return name.lower().replace(" ", "-")


def _figure(svg, caption):
    return f"<figure>{svg}<figcaption>{caption}</figcaption></figure>"


def _results(report, others):
    return f"""{tables.paper_table(report, others)}
<p class="note">Percent, with 95 % intervals: images are resampled with their
captions, and whatever else shares a label.
{GALLERIES.get(report.protocol, GALLERIES["all"])}</p>
<details><summary>Every figure</summary>{tables.metrics_table(report)}</details>
"""


def _examples(report, found):
    split = report.split
    if split is None:
        return (
            "<p>Only embeddings were given: pass a split to "
            "<code>kmatch.evaluate</code> to see images and captions.</p>"
        )
    images, captions = report.readable or (
        range(report.num_images),
        range(report.num_captions),
    )
    parts = []
    for direction, ranks in ("t2i", found.t2i), ("i2t", found.i2t):
        shown = examples(report.embedded, ranks, direction)
        parts.append(f"<h3>{DIRECTIONS[direction]}</h3>")
        parts.append(
            galleries.gallery(
                shown,
                direction,
                ranks.gallery_size,
                lambda i: galleries.thumbnail(split.images, images[i]),
                lambda i: split.captions[captions[i]],
            )
        )
    return "\n".join(parts)


def _space(report, found):
    parts = []
    drawn = projection.projection_plot(report.embedded)
    if drawn is not None:
        parts.append(
            _figure(
                drawn,
                "Matched pairs by t-SNE, a line from each image to one of its "
                "captions. Where a modality keeps to itself, the two have "
                "not met.",
            )
        )
    parts.append(
        _figure(
            diagnostics.similarities_plot(found.similarities),
            "Similarities of matched and unmatched pairs: the less they "
            "overlap, the better.",
        )
    )
    if not found.unit:
        parts.append(
            _figure(
                diagnostics.norms_plot(found.norms),
                "Norms of both modalities before they are normalised.",
            )
        )
    parts.append(
        _figure(
            diagnostics.hubness_plot(found.hubs),
            "Hubness: how often items are in a top 10, beside the mean. Hubs "
            "on the left crowd out what should be found.",
        )
    )
    return (
        f'<div class="figures">{"".join(parts)}</div>'
        f"{tables.facts_table(_facts(found))}"
    )


def _facts(found):
    gap, hubs = found.gap, found.hub_figures()
    facts = {
        "Modality gap, the distance between the two means": (
            f"{gap['distance']:.3f}"
        ),
        "Mean similarity among images, among captions": (
            f"{gap['within_images']:.3f}, {gap['within_captions']:.3f}"
        ),
    }
    for name, own in hubs.items():
        facts[f"Hubs among {name}"] = (
            f"skewness {own['skewness']:.2f}; the largest is in "
            f"{100 * own['largest']:.1f} % of top-10 lists; "
            f"{100 * own['never']:.1f} % are in none"
        )
    if found.unit:
        facts["Norms"] = "all 1: these embeddings came normalised"
    return facts


def _recall(report, found):
    parts = [
        _figure(
            curves.precision_recall_plot(report.folds),
            "Precision at each level of recall, interpolated and averaged "
            "over queries. The larger the area under a line, the better.",
        )
    ]
    if found.lengths:
        parts.append(
            _figure(
                diagnostics.length_plot(found.lengths, report.ks),
                "Text-to-image recall by caption length, "
                "each caption searching among all images."
                if found.own_gallery
                else "Text-to-image recall by caption length.",
            )
        )
    return f'<div class="figures">{"".join(parts)}</div>'


def _training(history):
    if not history:
        return ""
    parts = [
        _figure(
            curves.losses_plot(history), f"Losses over {len(history)} epochs."
        )
    ]
    recalls = curves.recalls_plot(history)
    if recalls:
        parts.append(_figure(recalls, "Recall on the validation split."))
    return f'<div class="figures">{"".join(parts)}</div>'
