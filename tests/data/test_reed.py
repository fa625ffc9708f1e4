"""CUB and Flowers, whose captions come in one layout."""

import numpy as np
import pytest

import kmatch

CUB = {
    "train": ["001.Black_footed_Albatross", "004.Groove_billed_Ani"],
    "val": ["002.Laysan_Albatross"],
    "test": ["003.Sooty_Albatross"],
}
FLOWERS = {
    "train": ["class_00002", "class_00010"],
    "val": ["class_00001"],
    "test": ["class_00003"],
}


def write(root, classes, images, with_class):
    """Two images per class, ten captions each, with the quirks of the real."""
    number = 0
    for split, names in classes.items():
        # Lists end lines as Windows does, or have no end at all.
        (root / f"{split}classes.txt").write_bytes(
            "\r\n".join(names).encode("utf-8-sig")
        )
        for name in names:
            (root / "text_c10" / name).mkdir(parents=True)
            for _ in range(2):
                number += 1
                stem = f"image_{number:05}"
                lines = [f"a bird {number} {n} – é. " for n in range(10)]
                (root / "text_c10" / name / f"{stem}.txt").write_bytes(
                    "\r\n".join([*lines, "", ""]).encode()
                )
                (root / "text_c10" / name / f"{stem}.h5").write_bytes(b"")
                folder = root / images / (name if with_class else "")
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{stem}.jpg").write_bytes(b"")


@pytest.fixture
def cub(tmp_path):
    write(tmp_path, CUB, "CUB_200_2011/images", with_class=True)
    return tmp_path


@pytest.fixture
def flowers(tmp_path):
    write(tmp_path, FLOWERS, "jpg", with_class=False)
    return tmp_path


def check(data):
    assert [split.labels.tolist() for split in data] == [
        [0, 0, 1, 1], [2, 2], [3, 3],
    ]  # fmt: skip
    assert np.bincount(data.train.caption_image).tolist() == [10] * 4
    assert data.train.captions[11] == "a bird 2 1 – é."


def test_cub(cub, caplog):
    data = kmatch.data.load("cub", root=cub)
    check(data)
    assert data.train.images[2].endswith(
        "images/004.Groove_billed_Ani/image_00003.jpg"
    )
    assert "cub has 8 images; published are 11788." in caplog.text
    assert "train split has 2 classes; published are 100" in caplog.text


def test_flowers(flowers, caplog):
    data = kmatch.data.load("flowers", root=flowers)
    check(data)
    assert data.test.images[1].endswith("jpg/image_00008.jpg")
    assert "flowers has 8 images; published are 8189." in caplog.text
    assert "test split has 1 classes; published are 20" in caplog.text


def test_captions_and_lists_may_lie_in_their_archives_folder(cub):
    (cub / "cvpr2016_cub").mkdir()
    for path in [cub / "text_c10", *cub.glob("*classes.txt")]:
        path.rename(cub / "cvpr2016_cub" / path.name)
    check(kmatch.data.load("cub", root=cub))


def test_captions_that_are_not_utf8(cub, caplog):
    path = cub / "text_c10" / CUB["train"][0] / "image_00001.txt"
    path.write_bytes("a bird’s café\n".encode("cp1252"))
    data = kmatch.data.load("cub", root=cub)
    assert data.train.captions[0] == "a bird’s café"
    assert "image_00001.txt' is not UTF-8" in caplog.text


def test_an_image_without_caption_is_left_out(flowers, caplog):
    path = flowers / "text_c10" / "class_00002" / "image_00001.txt"
    path.write_text(" \n")
    assert len(kmatch.data.load("flowers", root=flowers).train.images) == 3
    assert "left out 1 images without caption: image_00001.jpg" in caplog.text


def test_a_class_in_two_splits_is_refused(cub):
    with open(cub / "testclasses.txt", "a") as file:
        file.write(f"\n{CUB['train'][1]}\n")
    with pytest.raises(ValueError, match="004.Groove.* for train and for test"):
        kmatch.data.load("cub", root=cub)


def test_missing_files_are_named(cub):
    with pytest.raises(ValueError, match="pass root='…'.*text_c10"):
        kmatch.data.load("cub")
    with pytest.raises(ValueError, match="text_c10.*reedscot"):
        kmatch.data.load("cub", root=cub / "nowhere")
    with open(cub / "testclasses.txt", "a") as file:
        file.write("\n200.Yellowthroat\n")
    with pytest.raises(ValueError, match="text_c10/200.Yellowthroat'"):
        kmatch.data.load("cub", root=cub)
    (cub / "valclasses.txt").unlink()
    with pytest.raises(ValueError, match="valclasses.txt.*reedscot"):
        kmatch.data.load("cub", root=cub)
