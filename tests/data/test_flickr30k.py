import json

import pytest

import kmatch
from kmatch.cli.main import main


@pytest.fixture
def root(tmp_path):
    """A few images in the layout of the real data set."""
    folder = tmp_path / "flickr30k-images"
    folder.mkdir()
    splits = ["train", "test", "train", "val", "train"]
    entries = []
    for i, split in enumerate(splits):
        (folder / f"100{i}.jpg").write_bytes(b"")
        sentences = [
            {"raw": f"Café {i}, caption {n} . ", "tokens": ["x"], "imgid": i}
            for n in range(5 - i % 2)
        ]
        entries.append(
            {
                "filename": f"100{i}.jpg",
                "split": split,
                "sentences": sentences,
                "imgid": i,
                "sentids": list(range(len(sentences))),
            }
        )
    (tmp_path / "dataset_flickr30k.json").write_text(
        json.dumps({"images": entries, "dataset": "flickr30k"}),
        encoding="utf-8",
    )
    return tmp_path


def test_splits_and_labels(root):
    data = kmatch.data.load("flickr30k", root=root)
    names = [path.rsplit("/", 1)[1] for path in data.train.images]
    assert names == ["1000.jpg", "1002.jpg", "1004.jpg"]
    assert data.train.captions[0] == "Café 0, caption 0 . "
    assert data.train.labels.tolist() == [0, 1, 2]
    assert data.val.labels.tolist() == [3]
    assert data.test.labels.tolist() == [4]
    assert data.test.text_labels.tolist() == [4] * 4


def test_unusual_counts_are_reported(root, caplog):
    kmatch.data.load("flickr30k", root=root)
    assert "train split has 3 images and 15 captions" in caplog.text
    assert "published are 29000 and 145000" in caplog.text


def test_images_may_lie_in_another_folder(root):
    (root / "flickr30k-images").rename(root / "images")
    assert len(kmatch.data.load("flickr30k", root=root).train.images) == 3


def test_missing_files_are_named(root, tmp_path):
    with pytest.raises(ValueError, match="pass root="):
        kmatch.data.load("flickr30k")
    with pytest.raises(ValueError, match="dataset_flickr30k.json.*stanford"):
        kmatch.data.load("flickr30k", root=tmp_path / "nowhere")
    (root / "flickr30k-images" / "1002.jpg").unlink()
    with pytest.raises(ValueError, match="1 of 3 images do not exist.*1002"):
        kmatch.data.load("flickr30k", root=root)
    (root / "flickr30k-images").rename(root / "elsewhere")
    with pytest.raises(ValueError, match="'1000.jpg' is in none of"):
        kmatch.data.load("flickr30k", root=root)


CAPTIONS = ['Zwei Männer, "two" men | .  ', "A dog runs ."]


@pytest.fixture
def listed(root):
    """The same images, with lists in place of Karpathy's split file."""
    (root / "dataset_flickr30k.json").unlink()
    lists = {"train": "1000\r\n1002\r\n", "val": "1003.jpg", "test": "1001\n"}
    for name, names in lists.items():
        (root / f"{name}.txt").write_bytes(names.encode("utf-8-sig"))
    return root


def check_listed(data, captions=CAPTIONS):
    assert [len(split.images) for split in data] == [2, 1, 1]
    assert data.train.captions[:2] == captions
    assert data.train.caption_image.tolist() == [0, 0, 1, 1]
    assert [split.labels.tolist() for split in data] == [[0, 1], [2], [3]]


def test_token_file(listed, caplog):
    lines = [
        f"100{i}.jpg#{n}\t{caption}"
        for n, caption in enumerate(CAPTIONS)
        for i in range(6)
    ]
    (listed / "results_20130124.token").write_bytes("\r\n".join(lines).encode())
    check_listed(kmatch.data.load("flickr30k", root=listed))
    assert "1 images that are in no split: 1004.jpg" in caplog.text
    assert "2 captions of 1 images that are not there: 1005" in caplog.text
    assert "flickr30k has 4 images; published are 31783" in caplog.text


def test_table_with_bars(listed):
    lines = ["image_name| comment_number| comment"]
    lines += [f"100{i}.jpg| 0| {CAPTIONS[0]}" for i in range(5)]
    # In the real file, one line lacks a bar.
    lines += [f"100{i}.jpg| 4   {CAPTIONS[1]}" for i in range(5)]
    (listed / "results.csv").write_text("\n".join(lines), encoding="utf-8")
    check_listed(
        kmatch.data.load("flickr30k", root=listed),
        [caption.strip() for caption in CAPTIONS],
    )


@pytest.mark.parametrize(
    "header, number",
    [("image,caption", ""), ("image,comment_number,comment", "0,")],
)
def test_table_with_commas(listed, header, number):
    quoted = CAPTIONS[0].replace('"', '""')
    lines = [header]
    for i in range(5):
        lines += [f'100{i}.jpg,{number}"{quoted}"']
        lines += [f"100{i}.jpg,{number}A dog, a cat ."]
    (listed / "captions.txt").write_text("\n".join(lines), encoding="utf-8")
    check_listed(
        kmatch.data.load("flickr30k", root=listed),
        [CAPTIONS[0].strip(), "A dog, a cat ."],
    )


def test_lists_in_another_folder_and_missing_ones(listed, root):
    lines = [f"100{i}.jpg#0\t{CAPTIONS[0]}" for i in range(5)]
    (listed / "results_20130124.token").write_text("\n".join(lines))
    (listed / "mine").mkdir()
    for name in ("train", "val", "test"):
        (listed / f"{name}.txt").rename(listed / "mine" / f"{name}.txt")
    data = kmatch.data.load("flickr30k", root=listed, split=listed / "mine")
    assert len(data.train.images) == 2
    out, lists = str(listed / "records"), str(listed / "mine")
    prepare = ["prepare", "flickr30k", "--root", str(listed), "--out", out]
    assert main([*prepare, "--split", lists]) == 0
    prepared = kmatch.data.load("flickr30k", root=out)
    assert prepared.train.captions == data.train.captions
    with pytest.raises(ValueError, match="train.txt.*flickr30k_entities"):
        kmatch.data.load("flickr30k", root=listed)
    (listed / "mine" / "val.txt").write_text("1000.jpg\n")
    with pytest.raises(ValueError, match="listed for train and for val"):
        kmatch.data.load("flickr30k", root=listed, split=listed / "mine")


@pytest.mark.parametrize(
    "content, message",
    [
        ("image|words\n", "none of the columns comment"),
        ("image|n|comment\nx.jpg| no number\n", "Line 2 .* image, n, comment"),
    ],
)
def test_a_table_of_another_kind_is_named(listed, content, message):
    (listed / "results.csv").write_text(content)
    with pytest.raises(ValueError, match=message):
        kmatch.data.load("flickr30k", root=listed)
