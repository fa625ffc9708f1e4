import json

import pytest

import kmatch


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
