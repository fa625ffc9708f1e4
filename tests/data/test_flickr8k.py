import pytest

import kmatch

SPLIT = {"a.jpg": "train", "b.jpg": "train", "c.jpg": "dev", "d.jpg": "test"}


@pytest.fixture
def root(tmp_path):
    """A few images in the layout of the real data set, quirks included."""
    folder = tmp_path / "Flicker8k_Dataset"
    folder.mkdir()
    for name in (*SPLIT, "unlisted.jpg"):
        (folder / name).write_bytes(b"")
    # Captions of one image do not always stand together.
    lines = [
        f"{name}#{number}\tCafé {name} , caption {number} . "
        for number in range(3)
        for name in (*SPLIT, "unlisted.jpg", "orphan.jpg.1")
    ]
    (tmp_path / "Flickr8k.token.txt").write_bytes(
        "\r\n".join(lines).encode("utf-8")
    )
    for split in ("train", "dev", "test"):
        names = [name for name in SPLIT if SPLIT[name] == split]
        (tmp_path / f"Flickr_8k.{split}Images.txt").write_text(
            "\n".join([*names, names[0], ""])
        )
    return tmp_path


def test_splits_and_labels(root):
    data = kmatch.data.load("flickr8k", root=root)
    assert [path.rsplit("/", 1)[1] for path in data.train.images] == [
        "a.jpg", "b.jpg",
    ]  # fmt: skip
    assert data.train.captions[3] == "Café b.jpg , caption 0 . "
    assert data.train.caption_image.tolist() == [0, 0, 0, 1, 1, 1]
    assert data.train.labels.tolist() == [0, 1]
    assert data.val.text_labels.tolist() == [2, 2, 2]
    assert data.test.text_labels.tolist() == [3, 3, 3]


def test_what_is_left_out_is_reported_once(root, caplog):
    kmatch.data.load("flickr8k", root=root)
    shown = caplog.text
    assert shown.count("3 captions of 1 images that are not there") == 1
    assert shown.count("orphan.jpg.1") == 1
    assert shown.count("1 images that are in no split: unlisted.jpg") == 1
    assert "train split has 2 images and 6 captions; published" in shown


def test_a_listed_image_without_caption_is_left_out(root, caplog):
    with open(root / "Flickr_8k.devImages.txt", "a") as file:
        file.write("bare.jpg\n")
    data = kmatch.data.load("flickr8k", root=root)
    assert len(data.val.images) == 1
    assert "have no caption: bare.jpg" in caplog.text


def test_text_files_may_lie_in_their_own_folder(root):
    (root / "Flickr8k_text").mkdir()
    for path in root.glob("*.txt"):
        path.rename(root / "Flickr8k_text" / path.name)
    assert len(kmatch.data.load("flickr8k", root=root).test.images) == 1


def test_missing_and_malformed_files_are_named(root, tmp_path):
    with pytest.raises(ValueError, match="pass root="):
        kmatch.data.load("flickr8k")
    with pytest.raises(ValueError, match="Flickr8k.token.txt.*https"):
        kmatch.data.load("flickr8k", root=tmp_path / "nowhere")
    (root / "Flicker8k_Dataset" / "b.jpg").unlink()
    with pytest.raises(ValueError, match="1 of 2 images do not exist.*b.jpg"):
        kmatch.data.load("flickr8k", root=root)
    (root / "Flicker8k_Dataset").rename(root / "elsewhere")
    with pytest.raises(ValueError, match="images are in none of"):
        kmatch.data.load("flickr8k", root=root)
    with open(root / "Flickr8k.token.txt", "a") as file:
        file.write("\nno tab here")
    with pytest.raises(ValueError, match="Line 19 of .*no tab here"):
        kmatch.data.load("flickr8k", root=root)


def test_the_real_one(shared, caplog):
    data = kmatch.data.load("flickr8k", root=shared / "flickr8k")
    counts = [(len(split.images), len(split.captions)) for split in data]
    assert counts == [(6000, 30000), (1000, 5000), (1000, 5000)]
    assert "5 captions of 1 images that are not there" in caplog.text
    assert "2258277193_586949ec62.jpg.1" in caplog.text
    assert "91 images that are in no split" in caplog.text
    assert len(caplog.records) == 2
