import json

import pytest

from kmatch.data import from_table


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "photos").mkdir()
    for i in range(20):
        (tmp_path / "photos" / f"{i}.jpg").write_bytes(b"")
    return tmp_path


def write(folder, *lines, name="pairs.csv"):
    (folder / name).write_text("\n".join([*lines, ""]), encoding="utf-8")
    return folder / name


WITH_SPLITS = [
    "image,caption,label,split",
    'photos/0.jpg,"a café, red",ann,train',
    "photos/1.jpg,two,bob,train",
    "photos/0.jpg,three,ann,Training",
    "photos/2.jpg,four,ann,val",
    "photos/3.jpg,five,cid,test",
]


def check_with_splits(data):
    train = data.train
    assert [path.rsplit("/", 1)[1] for path in train.images] == [
        "0.jpg", "1.jpg",
    ]  # fmt: skip
    assert train.captions == ["a café, red", "three", "two"]
    assert train.caption_image.tolist() == [0, 0, 1]
    assert [split.labels.tolist() for split in data] == [[0, 1], [0], [2]]


def test_csv_as_spreadsheets_write_it(folder):
    path = folder / "pairs.csv"
    path.write_bytes("\r\n".join(WITH_SPLITS).encode("utf-8-sig"))
    check_with_splits(from_table(path))


def test_tsv(folder):
    lines = [line.replace(",", "\t") for line in WITH_SPLITS]
    lines[1] = "photos/0.jpg\ta café, red\tann\ttrain"
    check_with_splits(from_table(write(folder, *lines, name="pairs.tsv")))


def test_jsonl_with_lists_of_captions(folder):
    objects = [
        ("0", ["a café, red", "three"], "ann", "train"),
        ("1", "two", "bob", "train"),
        ("2", "four", "ann", "dev"),
        ("3", "five", 7, "test"),
    ]
    names = ("image", "caption", "label", "split")
    lines = [
        json.dumps(dict(zip(names, (f"photos/{image}.jpg", *rest))))
        for image, *rest in objects
    ]
    path = write(folder, *lines, name="pairs.jsonl")
    check_with_splits(from_table(path))


def test_other_column_names(folder):
    lines = [WITH_SPLITS[0].replace("caption", "text"), *WITH_SPLITS[1:]]
    path = write(folder, *lines)
    check_with_splits(from_table(path, columns={"caption": "text"}))


def test_paths_are_relative_to_the_table(folder, monkeypatch):
    path = write(folder, *WITH_SPLITS)
    monkeypatch.chdir(folder)
    relative = from_table("pairs.csv")
    check_with_splits(relative)
    assert relative.train.images[0] == "photos/0.jpg"
    assert from_table(path).train.images[0] == str(folder / "photos/0.jpg")


def rows(images, label=None):
    """Two captions per image, not side by side."""
    header = "image,caption" + (",label" if label else "")
    return [header] + [
        f"photos/{i}.jpg,{i} {n}" + (f",{label(i)}" if label else "")
        for n in range(2)
        for i in images
    ]


def test_a_random_split_keeps_images_whole(folder):
    data = from_table(write(folder, *rows(range(20))))
    assert [len(split.images) for split in data] == [16, 2, 2]
    images = [path for split in data for path in split.images]
    assert len(set(images)) == 20
    for split in data:
        for caption, image in zip(split.captions, split.caption_image):
            assert f"/{caption.split()[0]}.jpg" in split.images[image]
    labels = [label for split in data for label in split.labels.tolist()]
    assert labels == list(range(20))


def test_a_random_split_depends_on_the_seed_alone(folder):
    path = write(folder, *rows(range(20)))
    backwards = write(folder, *rows(range(19, -1, -1)), name="b.csv")
    first = from_table(path)
    assert set(first.test.images) == set(from_table(backwards).test.images)
    others = [set(from_table(path, seed=s).test.images) for s in range(1, 5)]
    assert any(other != set(first.test.images) for other in others)
    assert len(from_table(path, val=0.25, test=0.5).test.images) == 10


def test_two_ways_to_write_a_path_are_one_image(folder):
    lines = rows(range(3)) + ["./photos/../photos/1.jpg,again"]
    data = from_table(write(folder, *lines))
    assert sum(len(split.images) for split in data) == 3
    assert sum(len(split.captions) for split in data) == 7


def test_a_random_split_by_label(folder):
    path = write(folder, *rows(range(20), label=lambda i: i % 5))
    by_image, by_label = from_table(path), from_table(path, split_by="label")
    assert len(by_image.val.images) == 2
    assert set(by_image.val.labels.tolist()) <= set(range(5))
    assert [sorted({*split.labels.tolist()}) for split in by_label] == [
        [0, 1, 2], [3], [4],
    ]  # fmt: skip


@pytest.mark.parametrize(
    "lines, message",
    [
        (["picture,caption", "x,y"], "no column 'image'. It has caption, pic"),
        (["image,caption"], "has no rows"),
        ([], "has no rows"),
        (["image,caption", "photos/0.jpg,"], "Line 2 of .* has no caption"),
        (["image,caption", " ,x"], "Line 2 of .* has no image"),
        (["image,caption", "photos/0.jpg,a, b"], "Line 2 .* has 3 values.*quo"),
        (["image,caption", 'photos/0.jpg,"a'], "broken.*double the quotes"),
        (rows(range(2)), "2 images, too few"),
        (rows([0, 1, 20]), "20.jpg"),
        ([*WITH_SPLITS, "photos/4.jpg,x,y,eval"], "Line 7 .* split 'eval'"),
        ([*WITH_SPLITS, "photos/4.jpg,x,,test"], "Line 7 .* has no label"),
        (WITH_SPLITS[:-1], "No row of .* is of the split test"),
        (
            [*WITH_SPLITS, "photos/0.jpg,x,ann,test"],
            "the split 'train' in line 2 of .* and 'test' in line 7",
        ),
        (
            [*WITH_SPLITS, "photos/3.jpg,x,bob,test"],
            "the label 'cid' in line 6 of .* and 'bob' in line 7",
        ),
    ],
)
def test_bad_tables_are_explained(folder, lines, message):
    with pytest.raises(ValueError, match=message):
        from_table(write(folder, *lines))


@pytest.mark.parametrize(
    "line, message",
    [
        ("{", "Line 1 of .* is not a JSON object"),
        ("[1]", "Line 1 of .* is not a JSON object"),
        ('{"image": "a", "caption": 5}', "caption of the type int"),
        ('{"image": ["a"], "caption": "b"}', "image of the type list"),
    ],
)
def test_bad_json_lines_are_explained(folder, line, message):
    with pytest.raises(ValueError, match=message):
        from_table(write(folder, line, name="pairs.jsonl"))


def test_bad_arguments_are_explained(folder):
    path = write(folder, *rows(range(5)))
    with pytest.raises(ValueError, match="columns renames"):
        from_table(path, columns={"text": "caption"})
    with pytest.raises(ValueError, match="no column 'who'"):
        from_table(path, columns={"label": "who"})
    with pytest.raises(ValueError, match="leave some for training"):
        from_table(path, val=0.5, test=0.5)
    with pytest.raises(ValueError, match="split_by"):
        from_table(path, split_by="person")
    with pytest.raises(ValueError, match="There is no table"):
        from_table(folder / "nothing.csv")
    with pytest.raises(ValueError, match=".jsonl file"):
        from_table(path.rename(folder / "pairs.xlsx"))
    (folder / "latin.csv").write_bytes("image,caption\nx,é".encode("cp1252"))
    with pytest.raises(ValueError, match="not in UTF-8"):
        from_table(folder / "latin.csv")
