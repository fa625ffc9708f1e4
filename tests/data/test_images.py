import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from kmatch.data.images import (
    decode_at_least,
    decode_image,
    image_bytes,
    image_reader,
)

RGB = np.random.default_rng(0).integers(0, 256, [9, 14, 3]).astype("uint8")


def encoded(format, mode="RGB"):
    buffer = io.BytesIO()
    Image.fromarray(RGB).convert(mode).save(buffer, format)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "format, mode",
    [
        ("JPEG", "RGB"), ("JPEG", "L"), ("JPEG", "CMYK"),
        ("PNG", "RGB"), ("PNG", "RGBA"), ("PNG", "L"), ("PNG", "P"),
        ("GIF", "P"), ("BMP", "RGB"), ("WEBP", "RGB"),
    ],
)  # fmt: skip
def test_formats(format, mode):
    image = decode_image(tf.constant(encoded(format, mode)), 8)
    assert image.shape == (8, 8, 3)
    assert image.dtype == tf.float32
    expected = Image.open(io.BytesIO(encoded(format, mode))).convert("RGB")
    expected = tf.image.resize(np.array(expected), [8, 8])
    # Decoders differ by a few levels; a wrong channel order by far more.
    assert np.abs(image - expected).mean() < 6


def test_one_pixel_becomes_an_image():
    data = tf.io.encode_png(np.full([1, 1, 3], 7, "uint8"))
    np.testing.assert_array_equal(decode_image(data, 4), np.full([4, 4, 3], 7))


@pytest.mark.parametrize("kind", ["paths", "bytes", "arrays", "one array"])
def test_all_ways_in_give_the_same(tmp_path, kind):
    paths = [str(tmp_path / f"{i}.png") for i in range(2)]
    arrays = [RGB, RGB[::-1]]
    for path, array in zip(paths, arrays):
        with open(path, "wb") as file:
            file.write(image_bytes(array))
    images = {
        "paths": paths,
        "bytes": [image_bytes(path) for path in paths],
        "arrays": arrays,
        "one array": np.stack(arrays),
    }[kind]
    read = image_reader(images, 8)
    for i, array in enumerate(arrays):
        expected = tf.image.resize(array, [8, 8])
        np.testing.assert_array_equal(read(tf.constant(i)), expected)


def test_arrays_of_different_sizes_and_grey_ones():
    grey = RGB[:5, :, 0]
    read = image_reader([RGB, grey, grey[..., None]], 8)
    expected = tf.image.resize(np.stack([grey] * 3, axis=2), [8, 8])
    np.testing.assert_array_equal(read(tf.constant(1)), expected)
    np.testing.assert_array_equal(read(tf.constant(2)), expected)
    np.testing.assert_array_equal(
        read(tf.constant(0)), tf.image.resize(RGB, [8, 8])
    )


def photo(height, width, **options):
    """A smooth image as a JPEG file, and its pixels."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, [6, 6, 3]).astype("float32")
    pixels = tf.image.resize(coarse, [height, width], "bicubic")
    pixels = np.clip(pixels, 0, 255).astype("uint8")
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=95, **options)
    return buffer.getvalue(), pixels


@pytest.mark.parametrize("size", [(64, 200), (128, 160), (400, 304)])
@pytest.mark.parametrize("options", [{}, {"progressive": True}])
def test_large_jpegs_are_decoded_at_reduced_scale(size, options):
    data, pixels = photo(*size, **options)
    image = decode_image(tf.constant(data), 32)
    expected = tf.image.resize(pixels, [32, 32], antialias=True)
    assert np.abs(image - expected).mean() < 3


def test_small_jpegs_give_the_pixels_of_a_plain_decode_and_resize():
    data, _ = photo(50, 60)
    plain = tf.image.resize(tf.io.decode_jpeg(data, channels=3), [32, 32])
    np.testing.assert_array_equal(decode_image(tf.constant(data), 32), plain)


def test_the_scale_is_the_smallest_that_still_fills_the_image():
    used = [
        decode_at_least(tf.constant(photo(*size)[0]), 32).shape[:2]
        for size in [(31, 500), (63, 64), (64, 64), (130, 128), (300, 260)]
    ]
    assert used == [(31, 500), (63, 64), (32, 32), (33, 32), (38, 33)]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"text",
        b"\xff\xd8\xff",
        photo(64, 64)[0][:200],
        b"\x89PNG\r\n\x1a\n",
    ],
)
def test_what_is_no_image_fails(data):
    with pytest.raises(tf.errors.InvalidArgumentError):
        decode_image(tf.constant(data), 8)


def test_a_header_that_promises_gigabytes_is_refused():
    data = bytearray(photo(64, 64)[0])
    size = data.index(b"\xff\xc0") + 5  # height and width, two bytes each
    data[size : size + 4] = (60_000).to_bytes(2, "big") * 2
    with pytest.raises(tf.errors.InvalidArgumentError):
        decode_image(tf.constant(bytes(data)), 8)
