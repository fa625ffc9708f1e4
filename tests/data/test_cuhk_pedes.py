import json

import numpy as np
import pytest

import kmatch

# The person on each image, from 1 on and in no order; 4 has no image.
PERSONS = [3, 1, 2, 1, 5, 6, 6, 7]
SPLIT = {1: "train", 2: "train", 3: "train", 5: "val", 6: "test", 7: "test"}


def write(root, file, with_split):
    entries = []
    for i, person in enumerate(PERSONS):
        path = f"CUHK0{i % 3}/{person:04}_{i}.png"
        (root / "imgs" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "imgs" / path).write_bytes(b"")
        # Mostly two captions, some with one or three.
        count = {2: 1, 4: 3}.get(i, 2)
        entry = {
            "id": person,
            "file_path": path,
            "captions": [f"A man's coat – {i}.{n} " for n in range(count)],
        }
        if with_split:
            entry["split"] = SPLIT[person]
            entry["processed_tokens"] = [["a"]] * count
        entries.append(entry)
    (root / file).write_text(json.dumps(entries), encoding="utf-8")


@pytest.fixture
def root(tmp_path):
    write(tmp_path, "reid_raw.json", with_split=True)
    return tmp_path


def persons(split):
    return [int(path.rsplit("/", 1)[1][:4]) for path in split.images]


def test_split_by_person_with_ids_from_0(root):
    data = kmatch.data.load("cuhk_pedes", root=root)
    assert persons(data.train) == [1, 1, 2, 3]
    assert data.train.labels.tolist() == [0, 0, 1, 2]
    assert data.train.num_labels == 3
    assert data.train.captions[0] == "A man's coat – 1.0 "
    assert np.bincount(data.train.caption_image).tolist() == [2, 2, 1, 2]
    assert (persons(data.val), data.val.labels.tolist()) == ([5], [3])
    assert persons(data.test) == [6, 6, 7]
    assert data.test.labels.tolist() == [4, 4, 5]


def test_counts_are_compared(root, caplog):
    kmatch.data.load("cuhk_pedes", root=root)
    assert "published are 34054 and 68126" in caplog.text
    assert "the test split has 2 persons; published are 1000" in caplog.text


def test_without_splits_persons_are_split_by_number(tmp_path):
    write(tmp_path, "caption_all.json", with_split=False)
    data = kmatch.data.load("cuhk_pedes", root=tmp_path)
    assert persons(data.train) == [1, 1, 2, 3, 5]
    assert data.train.labels.tolist() == [0, 0, 1, 2, 3]
    assert persons(data.val) == [6, 6]
    assert persons(data.test) == [7]


def test_the_published_numbers_of_persons_come_out():
    from kmatch.data.cuhk_pedes import _splits_by_number

    splits = _splits_by_number(set(range(1, 13004)))
    assert [splits[i] for i in (1, 11003, 11004, 12003, 12004, 13003)] == [
        "train", "train", "val", "val", "test", "test",
    ]  # fmt: skip


def test_a_person_in_two_splits_is_refused(root):
    entries = json.loads((root / "reid_raw.json").read_text())
    entries[1]["split"] = "test"
    (root / "reid_raw.json").write_text(json.dumps(entries))
    with pytest.raises(ValueError, match="person 1 in the splits test and tr"):
        kmatch.data.load("cuhk_pedes", root=root)


def test_missing_files_are_named(root):
    with pytest.raises(ValueError, match="reid_raw.json.*caption_all.json.*ht"):
        kmatch.data.load("cuhk_pedes", root=root / "nowhere")
    (root / "imgs").rename(root / "elsewhere")
    with pytest.raises(ValueError, match="is in none of .*imgs"):
        kmatch.data.load("cuhk_pedes", root=root)
