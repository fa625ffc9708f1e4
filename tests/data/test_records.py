import io
import os
import signal
import struct
import subprocess
import sys
import time
import zlib
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import kmatch
from kmatch.cli.main import main
from kmatch.data.batching import batches
from kmatch.data.images import image_name, readable_images
from kmatch.data.records import prepare

NUM_IMAGES = {"train": 20, "dev": 6, "test": 5}


def jpeg(seed, height=40, width=30):
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, [4, 4, 3]).astype("uint8")
    image = Image.fromarray(coarse).resize([width, height])
    buffer = io.BytesIO()
    image.save(buffer, "JPEG")
    return buffer.getvalue()


def huge_png_header():
    """A PNG file of 20,000 x 20,000 pixels that ends after its header."""

    def chunk(kind, data):
        crc = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + crc

    size = struct.pack(">IIBBBBB", 20_000, 20_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size)


def huge_jpeg_header():
    """The same as a JPEG file: a small one that says it is large."""
    data = bytearray(jpeg(0))
    frame = data.index(b"\xff\xc0")
    data[frame + 5 : frame + 9] = struct.pack(">HH", 20_000, 20_000)
    return bytes(data)


BROKEN = {
    "train03.jpg": b"This is no image.",
    "train07.jpg": b"",
    "train11.jpg": huge_png_header(),
    "dev02.jpg": huge_jpeg_header(),
}


@pytest.fixture
def root(tmp_path):
    """Flickr8K in small, some of it broken; captions are interleaved."""
    root = tmp_path / "flickr8k"
    folder = root / "Flicker8k_Dataset"
    folder.mkdir(parents=True)
    names = []
    for split, count in NUM_IMAGES.items():
        own = [f"{split}{i:02}.jpg" for i in range(count)]
        (root / f"Flickr_8k.{split}Images.txt").write_text("\n".join(own))
        names += own
    for seed, name in enumerate(names):
        (folder / name).write_bytes(BROKEN.get(name, jpeg(seed)))
    (root / "Flickr8k.token.txt").write_text(
        "\n".join(
            f"{name}#{number}\tcafé {name.partition('.')[0]} {number} "
            for number in range(3)
            for name in [*names, "orphan.jpg.1"]
        )
    )
    return root


def write(root, out, **options):
    splits = kmatch.data.load("flickr8k", root)
    return list(
        prepare(
            "flickr8k", splits, out, root=root, images_per_shard=8, **options
        )
    )


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_a_prepared_folder_loads_as_the_original(root, tmp_path):
    write(root, tmp_path / "records")
    original = kmatch.data.load("flickr8k", root)
    prepared = kmatch.data.load("flickr8k", tmp_path / "records")
    for ours, theirs in zip(prepared, original):
        assert ours.captions == theirs.captions
        np.testing.assert_array_equal(ours.caption_image, theirs.caption_image)
        np.testing.assert_array_equal(ours.labels, theirs.labels)
        for data, path in zip(ours.images, theirs.images, strict=True):
            with open(path, "rb") as file:
                assert data == file.read()


def test_every_pair_from_raw_files_over_records_to_batches(
    root, tmp_path, caplog
):
    """Walks one epoch; nothing is lost or moved."""
    write(root, tmp_path / "records")
    train = kmatch.data.load("flickr8k", tmp_path / "records").train
    words = [f"train{i:02}" for i in range(20)] + ["café", "0", "1", "2"]
    tokenizer = kmatch.text.Tokenizer(words)
    dataset = batches(train, tokenizer, 16, 7, shuffle=True, seed=0)

    def pixels(name):
        path = root / "Flicker8k_Dataset" / f"{name}.jpg"
        image = tf.io.decode_jpeg(path.read_bytes(), channels=3, ratio=1)
        return tf.image.resize(image, [16, 16]).numpy()

    seen = Counter()
    for x, y in dataset:
        for image, tokens, label in zip(
            x["image"].numpy(), x["tokens"].numpy(), y["text_label"].numpy()
        ):
            _, name, number = (tokenizer.vocabulary[t] for t in tokens)
            assert label == int(name.removeprefix("train"))
            # At reduced scale, as decoding has it: close to the whole file.
            assert np.abs(image - pixels(name)).mean() < 20
            seen[name, number] += 1
    readable = [n for n in words[:20] if f"{n}.jpg" not in BROKEN]
    assert set(seen) == {(name, i) for name in readable for i in "012"}
    assert seen.total() == 60
    for name in BROKEN:
        assert caplog.text.count(name) == name.startswith("train")


def test_records_are_what_tensorflow_reads(root, tmp_path):
    shards = write(root, tmp_path / "records")
    assert [shard.path.name for shard in shards] == [
        "train-00000-of-00003.tfrecord", "train-00001-of-00003.tfrecord",
        "train-00002-of-00003.tfrecord", "val-00000-of-00001.tfrecord",
        "test-00000-of-00001.tfrecord",
    ]  # fmt: skip
    (first, *others) = tf.data.TFRecordDataset(str(shards[0].path))
    assert len(others) == 7
    feature = tf.train.Example.FromString(first.numpy()).features.feature
    assert feature["name"].bytes_list.value == [
        b"Flicker8k_Dataset/train00.jpg"
    ]
    assert feature["caption"].bytes_list.value[1].decode() == "café train00 1 "
    assert feature["caption_index"].int64_list.value == [0, 1, 2]


def test_unreadable_images_and_orphaned_captions_are_named(
    root, tmp_path, capsys
):
    out = str(tmp_path / "records")
    assert main(["prepare", "flickr8k", "--root", str(root), "--out", out]) == 0
    shown = capsys.readouterr().out
    assert "train: 20 images, 60 captions" in shown
    assert "orphan.jpg.1" in shown
    assert "4 unreadable images" in shown
    for name in BROKEN:
        assert name in shown


def test_images_are_shrunk_and_never_enlarged(root, tmp_path):
    write(root, tmp_path / "records", image_size=16)
    prepared = kmatch.data.load("flickr8k", tmp_path / "records")
    assert Image.open(io.BytesIO(prepared.test.images[0])).size == (16, 21)
    assert prepared.train.images[3] == BROKEN["train03.jpg"]
    write(root, tmp_path / "large", image_size=200)
    prepared = kmatch.data.load("flickr8k", tmp_path / "large")
    assert Image.open(io.BytesIO(prepared.test.images[0])).size == (30, 40)


def test_interrupted_it_goes_on_and_ends_with_the_same_bytes(root, tmp_path):
    write(root, tmp_path / "whole")
    splits = kmatch.data.load("flickr8k", root)
    out = tmp_path / "broken"
    shards = prepare("flickr8k", splits, out, root=root, images_per_shard=8)
    next(shards)
    kept = (out / "train-00000-of-00003.tfrecord").stat().st_mtime_ns
    next(shards)
    # Killed in between: the shard is there, its index is not.
    (out / "train-00001-of-00003.json").unlink()
    (out / ".train-00002-of-00003.tfrecord").write_bytes(b"half")
    with pytest.raises(ValueError, match="not finished"):
        kmatch.data.load("flickr8k", out)
    write(root, out)
    assert contents(out) == contents(tmp_path / "whole")
    assert (out / "train-00000-of-00003.tfrecord").stat().st_mtime_ns == kept


@pytest.mark.slow
def test_killed_and_run_again_it_ends_with_the_same_bytes(root, tmp_path):
    write(root, tmp_path / "whole")
    script = f"""
import kmatch, time
from kmatch.data.records import prepare
root, out = {str(root)!r}, {str(tmp_path / "killed")!r}
splits = kmatch.data.load("flickr8k", root)
for shard in prepare("flickr8k", splits, out, root=root, images_per_shard=8):
    time.sleep(0.5)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stderr=subprocess.DEVNULL
    )
    second = tmp_path / "killed" / "train-00001-of-00003.tfrecord"
    while not second.exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    write(root, tmp_path / "killed")
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_damaged_shards_are_named_and_not_fatal(root, tmp_path, caplog):
    out = tmp_path / "records"
    write(root, out)
    whole = contents(out)
    truncated, other, flipped = (
        out / f"train-0000{i}-of-00003.tfrecord" for i in range(3)
    )
    os.truncate(truncated, truncated.stat().st_size // 2)
    other.write_bytes(b"\0" * other.stat().st_size)
    data = bytearray(flipped.read_bytes())
    data[len(data) // 2] ^= 1
    flipped.write_bytes(data)
    (out / "val-00000-of-00001.tfrecord").unlink()

    caplog.clear()
    prepared = kmatch.data.load("flickr8k", out)
    for name in (truncated.name, other.name, "val-00000-of-00001.tfrecord"):
        assert caplog.text.count(f"{name}' is damaged") == 1
    assert "it is missing" in caplog.text
    assert len(prepared.train.captions) == 60
    images = prepared.train.images
    lost = {i for i, data in enumerate(images) if not data}
    assert {7, *range(8, 16)} < lost and len(lost) < 18
    read = {int(i) for x, _ in readable_images(images, 8, 4) for i in x}
    assert read == set(range(20)) - lost - {3}
    assert "train08.jpg" in image_name(images, 8)
    assert other.name in image_name(images, 8)

    truncated.with_suffix(".json").write_text("{}")
    write(root, out)
    assert contents(out) == whole


def test_prepared_again_a_mended_image_is_read(root, tmp_path):
    out = tmp_path / "records"
    write(root, out)
    prepared = kmatch.data.load("flickr8k", out)
    names = [image_name(prepared.train.images, i) for i in range(20)]
    index, broken = next(
        (i, root.glob(f"*/{own}"))
        for i, name in enumerate(names)
        for own in BROKEN
        if own in name
    )
    (broken,) = broken
    mended = tf.io.encode_jpeg(np.zeros([9, 9, 3], "uint8")).numpy()
    broken.write_bytes(mended)
    write(root, out)
    prepared = kmatch.data.load("flickr8k", out)
    assert prepared.train.images[index] == mended


def test_other_data_or_settings_are_refused(root, tmp_path):
    write(root, tmp_path / "records")
    with pytest.raises(ValueError, match="other data or of other settings"):
        write(root, tmp_path / "records", image_size=16)
    with pytest.raises(ValueError, match="records of 'flickr8k'"):
        kmatch.data.load("flickr30k", tmp_path / "records")
    kmatch.data.load("flickr8k", tmp_path / "records", restval=False)
    with pytest.raises(ValueError, match="prepared with the options"):
        kmatch.data.load("flickr8k", tmp_path / "records", restval=True)
    (tmp_path / "records" / "test-00000-of-00001.json").write_text("{")
    with pytest.raises(ValueError, match="test-00000.*kmatch prepare again"):
        kmatch.data.load("flickr8k", tmp_path / "records")


def test_arrays_become_records(tmp_path, scenes, unseen):
    splits = kmatch.data.Splits(scenes, unseen, unseen)
    list(prepare("shapes", splits, tmp_path))
    prepared = kmatch.data.load("shapes", tmp_path)
    image = tf.io.decode_png(prepared.train.images[5])
    np.testing.assert_array_equal(image, scenes.images[5])
