import json

import pytest

import kmatch

SPLITS = ["train", "val", "restval", "test", "train", "restval"]


def write_images(root, names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def captions(i):
    """COCO has five to seven captions, some with a line end or a space."""
    ends = ["", " ", "\n", ". "]
    return [f"A café {i}, nº {n}{ends[n % 4]}" for n in range(5 + i % 3)]


@pytest.fixture
def karpathy(tmp_path):
    entries = []
    for i, split in enumerate(SPLITS):
        folder = "train2014" if split == "train" else "val2014"
        name = f"COCO_{folder}_{i:012}.jpg"
        write_images(tmp_path, [f"{folder}/{name}"])
        sentences = [{"raw": x, "tokens": ["a"]} for x in captions(i)]
        entries.append(
            {
                "filepath": folder,
                "filename": name,
                "split": split,
                "sentences": sentences,
                "cocoid": i,
            }
        )
    (tmp_path / "dataset_coco.json").write_text(
        json.dumps({"images": entries, "dataset": "coco"})
    )
    return tmp_path


@pytest.fixture
def official(tmp_path):
    """Two images in train2014 and five in val2014, in no order."""
    for folder, ids in (("train2014", [9, 4]), ("val2014", [8, 3, 5, 2, 7])):
        names = {i: f"COCO_{folder}_{i:012}.jpg" for i in ids}
        write_images(tmp_path, [f"{folder}/{x}" for x in names.values()])
        annotations = [
            {"image_id": i, "id": 100 * i + n, "caption": caption}
            for i in ids
            for n, caption in enumerate(captions(i))
        ]
        images = [{"id": i, "file_name": names[i]} for i in ids]
        (tmp_path / "annotations").mkdir(exist_ok=True)
        (tmp_path / "annotations" / f"captions_{folder}.json").write_text(
            # Captions of an image do not stand together.
            json.dumps({"images": images, "annotations": annotations[::-1]})
        )
    return tmp_path


def numbers(split):
    return [int(path[-16:-4]) for path in split.images]


def test_karpathys_splits(karpathy):
    data = kmatch.data.load("coco", root=karpathy)
    assert [numbers(split) for split in data] == [[0, 4], [1], [3]]
    assert data.train.captions == captions(0) + captions(4)
    assert data.train.caption_image.tolist() == [0] * 5 + [1] * 6
    assert [split.labels.tolist() for split in data] == [[0, 1], [2], [3]]


def test_restval_joins_training(karpathy, caplog):
    data = kmatch.data.load("coco", root=karpathy, restval=True)
    assert [numbers(split) for split in data] == [[0, 2, 4, 5], [1], [3]]
    assert [split.labels.tolist() for split in data[1:]] == [[4], [5]]
    assert "published are 113287 and 566747" in caplog.text
    assert "test split has 1 images and 5 captions" in caplog.text


def test_official_captions(official, caplog):
    data = kmatch.data.load("coco", root=official)
    assert [numbers(split) for split in data] == [[4, 9], [2, 3], [5, 7]]
    assert data.train.captions == captions(4)[::-1] + captions(9)[::-1]
    assert "do not compare with those of the papers" in caplog.text
    assert "coco has 6 images; published are 123286." in caplog.text
    data = kmatch.data.load("coco", root=official, restval=True)
    assert [numbers(split) for split in data] == [[4, 9, 8], [2, 3], [5, 7]]


def test_official_images_without_caption_are_left_out(official, caplog):
    path = official / "annotations" / "captions_train2014.json"
    content = json.loads(path.read_text())
    content["images"].append({"id": 1, "file_name": "bare.jpg"})
    path.write_text(json.dumps(content))
    write_images(official, ["train2014/bare.jpg"])
    assert len(kmatch.data.load("coco", root=official).train.images) == 2
    assert "left out 1 images without caption: bare.jpg" in caplog.text


def test_missing_files_are_named(official):
    with pytest.raises(ValueError, match="pass root='…'.*dataset_coco.json"):
        kmatch.data.load("coco")
    (official / "annotations" / "captions_val2014.json").unlink()
    with pytest.raises(ValueError, match="captions_val2014.json.*cocodataset"):
        kmatch.data.load("coco", root=official)
    with pytest.raises(ValueError, match="captions_train2014.json.*stanford"):
        kmatch.data.load("coco", root=official / "nowhere")


def test_a_file_that_was_cut_off_is_named(karpathy):
    path = karpathy / "dataset_coco.json"
    path.write_text(path.read_text()[:200])
    with pytest.raises(ValueError, match="dataset_coco.json' is not a whole"):
        kmatch.data.load("coco", root=karpathy)
