import numpy as np
import pytest

import kmatch
from kmatch.data import CaptionedImages, from_pairs

IMAGES = np.zeros([2, 4, 4, 3], "uint8")


def test_labels_default_to_one_per_image():
    split = CaptionedImages(IMAGES, ["a", "b", "c"], [1, 0, 1])
    assert split.labels.tolist() == [0, 1]
    assert split.text_labels.tolist() == [1, 0, 1]
    assert split.num_labels == 2


def test_num_labels_covers_every_label():
    split = CaptionedImages(IMAGES, ["a", "b"], [0, 1], labels=[3, 7])
    assert split.num_labels == 8


def test_from_pairs_joins_equal_paths(tmp_path):
    for name in ("x.jpg", "y.jpg"):
        (tmp_path / name).write_bytes(b"")
    x, y = str(tmp_path / "x.jpg"), tmp_path / "y.jpg"
    split = from_pairs([x, y, x, str(y)], ["a", "b", "c", "d"])
    assert split.images == [x, str(y)]
    assert split.caption_image.tolist() == [0, 1, 0, 1]


def test_from_pairs_joins_the_same_array_but_not_equal_ones():
    first, second = np.zeros([2, 4, 4, 3], "uint8")
    split = from_pairs([first, second, first], ["a", "b", "c"])
    assert split.caption_image.tolist() == [0, 1, 0]


def test_from_pairs_with_labels():
    first, second = IMAGES
    split = from_pairs([first, first, second], ["a", "b", "c"], [4, 4, 1])
    assert split.labels.tolist() == [4, 1]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((IMAGES, ["a", "b"], [0, 2]), r"caption 1 \('b'\) belongs to image 2"),
        ((IMAGES, ["a", "b"], [0, -1]), "belongs to image -1"),
        ((IMAGES, ["a", "b"], [0, 0]), "first of them is image 1"),
        ((IMAGES, ["a", "b"], [0]), "2 captions and caption_image of shape"),
        ((IMAGES, ["a", "b"], [0.0, 1.0]), "whole numbers"),
        ((IMAGES, ["a", "b"], [0, 1], [0, 1, 2]), "each of the 2 images"),
        ((IMAGES, ["a", "b"], [0, 1], [0, -1]), "from 0 on"),
        ((IMAGES, ["a", "b"], [0, 1], ["x", "y"]), "return_inverse"),
        ((IMAGES, [], []), "at least one string"),
        ((IMAGES, "ab", [0, 1]), "list"),
        ((IMAGES, ["a", None], [0, 1]), "Caption 1 is not a string"),
        (([], ["a"], [0]), "no images"),
        ((["no/such.jpg"], ["a"], [0]), "'no/such.jpg'"),
        ((IMAGES[0], ["a"], [0]), "shape"),
        (([IMAGES[0], "x.jpg"], ["a", "b"], [0, 1]), "arrays and paths"),
        (([IMAGES[0], None], ["a", "b"], [0, 1]), "Image 1 is neither"),
        (([np.zeros([4, 4, 4])], ["a"], [0]), "Image 0 is neither"),
        ((np.full([2, 4, 4, 3], 0.5), ["a", "b"], [0, 1]), "Multiply"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        CaptionedImages(*arguments)


def test_missing_files_are_counted_and_named(tmp_path):
    (tmp_path / "there.jpg").write_bytes(b"")
    paths = [tmp_path / "there.jpg", *(tmp_path / f"{i}" for i in range(7))]
    with pytest.raises(ValueError, match="7 of 8 images do not exist") as info:
        from_pairs(paths, ["caption"] * 8)
    assert str(tmp_path / "0") in str(info.value)
    assert "and 2 more" in str(info.value)


def test_from_pairs_names_conflicting_labels(tmp_path):
    path = tmp_path / "x.jpg"
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="label 1 in one row and 2 in row 1"):
        from_pairs([path, path], ["a", "b"], labels=[1, 2])


def test_from_pairs_wants_parallel_lists():
    with pytest.raises(ValueError, match="2 images and 1 captions"):
        from_pairs(list(IMAGES), ["a"])
    with pytest.raises(ValueError, match="2 images and 3 labels"):
        from_pairs(list(IMAGES), ["a", "b"], [0, 1, 2])


def test_load_names_the_data_sets():
    with pytest.raises(ValueError, match="shapes, flickr8k, flickr30k, coco"):
        kmatch.data.load("flickr31k")
