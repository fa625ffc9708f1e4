import json
import re
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pytest
import tensorflow as tf

import kmatch
from kmatch.report import curves, diagnostics, galleries, page, projection
from kmatch.retrieval.examples import examples
from kmatch.retrieval.protocols import Embedded
from tests.reference import retrieval as reference

HISTORY = [
    {"loss": 9.0, "cmpm": 8.0, "val_i2t_r1": 0.1, "val_t2i_r1": 0.1},
    {"loss": 5.0, "cmpm": 4.0, "val_i2t_r1": 0.2, "val_t2i_r1": 0.3},
]
PAPER = {"a <paper>": {"i2t_r1": 0.403}}


class Outline(HTMLParser):
    """Tags that must be closed, and all addresses."""

    VOID = {"meta", "link", "img", "br"}

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.count = [], [], {}

    def handle_starttag(self, tag, attributes):
        self.count[tag] = self.count.get(tag, 0) + 1
        for name, value in attributes:
            if name in ("src", "href", "xlink:href", "action", "data"):
                self.addresses.append(value)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def report(trained, unseen):
    return kmatch.evaluate(trained, unseen)


@pytest.fixture(scope="module")
def saved(report, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report") / "new"
    path = report.save(folder, PAPER, HISTORY, title="Shapes & more")
    assert path == folder / "index.html"
    return folder


def test_the_page_holds_everything_and_fetches_nothing(saved):
    html = (saved / "index.html").read_text()
    outline = Outline()
    outline.feed(html)
    assert outline.open == []
    assert all(x.startswith(("data:", "#")) for x in outline.addresses)
    assert not re.search(r"@import|url\((?!#)", html)
    links = [x[1:] for x in outline.addresses if re.match(r"#[a-z-]+$", x)]
    assert links and all(f'id="{link}"' in html for link in links)
    # Precision, lengths, t-SNE, similarities, norms, hubness, losses, recall.
    assert outline.count["svg"] == 8
    for words in (
        "Shapes &amp; more", "a &lt;paper&gt;", "Worst failures",
        "Near misses", "Found at once", "Modality gap", "Hubness",
        "t-SNE", "Norms of both", "caption length", "64 images",
    ):  # fmt: skip
        assert words in html
    assert html.count('class="hit"') > 3 and html.count('class="miss"') > 3


def test_metrics_are_there_to_read(saved, report):
    figures = json.loads((saved / "metrics.json").read_text())
    assert figures["format_version"] == 1
    assert figures["metrics"] == pytest.approx(dict(report))
    assert set(figures["intervals"]) == set(report)
    assert figures["diagnostics"]["mean_norms"]["images"] > 0
    assert figures["history"] == HISTORY
    assert sorted(x.name for x in saved.iterdir()) == [
        "index.html",
        "metrics.json",
    ]


def test_nothing_is_left_behind_by_a_failure(report, tmp_path, monkeypatch):
    def fail(*arguments):
        raise OSError("disk full")

    monkeypatch.setattr(page.os, "replace", fail)
    monkeypatch.setattr(page, "_page", lambda *arguments: "")
    with pytest.raises(OSError, match="disk full"):
        report.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_missing_packages_are_named(report, tmp_path, monkeypatch):
    monkeypatch.setattr(page.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "kmatch\[report\]"'):
        report.save(tmp_path)


@pytest.mark.parametrize("count", [1, 2])
def test_few_embeddings_without_images_have_a_page(count, tmp_path):
    x, labels = np.eye(4)[:count], np.arange(count)
    report = kmatch.evaluate((x, x), labels=(labels, labels))
    html = report.save(tmp_path).read_text()
    assert "Only embeddings were given" in html
    assert "came normalised" in html


def test_collapsed_embeddings_of_one_class_have_a_page(tmp_path):
    x = np.ones([6, 4])
    report = kmatch.evaluate((x, x), labels=([3] * 6, [3] * 6))
    figures = json.loads(
        (report.save(tmp_path).parent / "metrics.json").read_text()
    )
    gap = figures["diagnostics"]["modality_gap"]
    assert gap["within_images"] == pytest.approx(1)
    assert figures["diagnostics"]["mean_similarities"]["unmatched"] is None


def test_images_that_have_gone_are_grey_and_named(
    trained, unseen, tmp_path, caplog
):
    files = [tmp_path / f"{i}.png" for i in range(12)]
    for file, image in zip(files, unseen.images):
        file.write_bytes(tf.io.encode_png(image).numpy())
    split = kmatch.data.CaptionedImages(
        files, unseen.captions[:12], np.arange(12)
    )
    report = kmatch.evaluate(trained, split)
    files[3].unlink()
    files[4].write_bytes(b"no image")
    html = report.save(tmp_path / "report").read_text()
    assert html.count(galleries.UNREADABLE) >= 2
    assert "3.png" in caplog.text and "4.png" in caplog.text


def test_the_page_takes_any_numbers(tmp_path):
    x = 300 * np.linspace(1, 2, 8, dtype=np.float16)[:, np.newaxis]
    for images in x, x.astype(np.float64) * 1e200:
        labels = np.arange(8)
        report = kmatch.evaluate(
            (images, images), labels=(labels, labels), ks=np.array([1, 5])
        )
        history = {"loss": [1.0, np.nan], "val_t2i_r1": [0.1, np.inf]}
        folder = report.save(tmp_path, history=history).parent
        figures = json.loads(
            (folder / "metrics.json").read_text(), parse_constant=pytest.fail
        )
        assert figures["history"][1] == {"loss": None, "val_t2i_r1": None}
        norms = figures["diagnostics"]["mean_norms"]
        assert norms["images"] == pytest.approx(images[:, 0].mean(dtype=float))


def test_the_users_settings_are_left_alone_and_do_not_show(tmp_path):
    x, labels = np.eye(6), np.arange(6)
    report = kmatch.evaluate((x, x), labels=(labels, labels))
    plain = report.save(tmp_path).read_text()
    with matplotlib.rc_context({"axes.grid": True, "font.family": "cursive"}):
        before = dict(matplotlib.rcParams)
        with ThreadPoolExecutor(4) as threads:
            saves = [threads.submit(report.save, tmp_path) for _ in range(8)]
        assert {own.result().read_text() for own in saves} == {plain}
        assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("form", ["list", "dict", "file", "folder", "fit"])
def test_histories_come_in_many_forms(form, tmp_path):
    (tmp_path / "history.json").write_text(json.dumps(HISTORY))
    columns = {name: [logs[name] for logs in HISTORY] for name in HISTORY[0]}

    class Fitted:
        history = columns

    given = {
        "list": HISTORY,
        "dict": columns,
        "file": tmp_path / "history.json",
        "folder": str(tmp_path),
        "fit": Fitted(),
    }[form]
    assert curves.read_history(given) == HISTORY
    assert curves.read_history(kmatch.callbacks.Checkpoint(tmp_path)) == HISTORY
    with pytest.raises(ValueError, match="There is no"):
        curves.read_history(tmp_path / "none")
    (tmp_path / "history.json").write_text("{")
    with pytest.raises(ValueError, match="history.json' holds no history"):
        curves.read_history(tmp_path)
    for bad in [1, 2], 5, {"loss": 1.0}, [{"loss": [1, 2]}], [{"loss": None}]:
        with pytest.raises(ValueError, match="logs of each epoch"):
            curves.read_history(bad)


def drawn(seed=0):
    rng = np.random.default_rng(seed)
    image_labels = np.arange(40) // 2
    text_labels = rng.permutation(np.repeat(np.arange(20), 4))
    centres = rng.normal(size=[20, 12])
    return Embedded(
        centres[image_labels] + rng.normal(size=[40, 12]),
        centres[text_labels] + rng.normal(size=[80, 12]),
        image_labels,
        text_labels,
    )


def found_in(embedded):
    return kmatch.retrieval.ranks_both_ways(
        embedded.images, embedded.texts,
        embedded.image_labels, embedded.text_labels,
    )  # fmt: skip


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
def test_examples_show_the_worst_and_the_best_failures_first(direction):
    embedded = drawn()
    found = found_in(embedded)[direction == "t2i"]
    shown = examples(embedded, found, direction, count=3, k=4)
    sides = [embedded.images, embedded.texts]
    queries, gallery = sides[::-1] if direction == "t2i" else sides
    order = kmatch.retrieval.ranking.tie_order(len(gallery))
    slow = [reference.ranking(query, gallery, order) for query in queries]
    ranks = {kind: [] for kind in ("worst", "near", "found")}
    for example in shown:
        ranks[example.kind].append(example.rank)
        assert example.hits.any() == (example.rank <= 4)
        assert (np.diff(example.scores) <= 0).all()
        assert example.own == slow[example.query][example.rank - 1]
    assert list(dict.fromkeys(e.kind for e in shown)) == list(ranks)
    assert max(ranks["worst"]) == found.first.max()
    assert min(ranks["near"]) == min(found.first[found.first > 1])
    assert set(ranks["found"]) == {1}
    sides = embedded.image_labels, embedded.text_labels
    labels = [sides[direction == "t2i"][e.query] for e in shown]
    assert len(set(labels)) == len(labels)


def test_hubness_counts_top_tens():
    embedded = drawn()
    counts = diagnostics.hubness(embedded)
    expected = np.zeros(40, int)
    for text in embedded.texts:
        order = kmatch.retrieval.ranking.tie_order(40)
        for item in reference.ranking(text, embedded.images, order)[:10]:
            expected[item] += 1
    np.testing.assert_array_equal(counts["images"], expected)
    assert counts["captions"].sum() == 400
    even = diagnostics.hub_figures(np.full(9, 3), 10)
    assert even == {"skewness": 0.0, "largest": 0.3, "never": 0.0}
    uneven = diagnostics.hub_figures(np.array([0, 0, 0, 9]), 10)
    assert uneven["skewness"] > 1 and uneven["never"] == 0.75


def test_similarities_are_those_of_pairs():
    embedded = drawn()
    found = diagnostics.similarities(embedded)
    assert len(found["matched"]) == 80
    every = [
        (reference.cosine(x, z), label == other)
        for x, label in zip(embedded.images, embedded.image_labels)
        for z, other in zip(embedded.texts, embedded.text_labels)
    ]
    scores, same = map(np.array, zip(*every))
    distance = np.abs(found["matched"][:, None] - scores[same])
    assert distance.min(axis=1).max() < 1e-5
    mean = scores[~same].mean()
    assert found["unmatched"].mean() == pytest.approx(mean, abs=0.02)


def test_pairs_match():
    embedded = drawn()
    images, texts = projection.pairs(embedded, 25)
    assert len(images) == len(set(images)) == 25
    np.testing.assert_array_equal(
        embedded.image_labels[images], embedded.text_labels[texts]
    )


def test_recall_by_length_covers_every_caption():
    embedded = drawn()
    _, t2i = found_in(embedded)
    captions = [" ".join(["word"] * (1 + i % 7)) for i in range(80)]
    rows = diagnostics.recall_by_length(captions, t2i, ks=(1, 5))
    assert sum(row["captions"] for row in rows) == 80
    assert rows[0]["words"][0] == 1 and rows[-1]["words"][1] == 7
    mean = sum(row["captions"] * row["r5"] for row in rows) / 80
    assert mean == pytest.approx(np.mean(t2i.first <= 5))
    two = ["one", "of two", "one", "one"] * 20
    assert [
        (row["words"], row["captions"])
        for row in diagnostics.recall_by_length(two, t2i, ks=(1,))
    ] == [([1, 1], 60), ([2, 2], 20)]
    alike = diagnostics.recall_by_length(["one"] * 80, t2i, ks=(1,))
    assert [row["words"] for row in alike] == [[1, 1]]


def test_modality_gap():
    apart = Embedded(
        np.tile([1.0, 0.0], [3, 1]), np.tile([-2.0, 0.0], [3, 1]),
        np.arange(3), np.arange(3),
    )  # fmt: skip
    gap = diagnostics.modality_gap(apart)
    assert gap == {"distance": 2, "within_images": 1, "within_captions": 1}
