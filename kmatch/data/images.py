"""Image files and arrays to tensors: the one way in for every image."""

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np
import tensorflow as tf

# Raised when the same file gives other pixels than before, so that features
# kept on disk are computed again.
DECODE_VERSION = 1

# Batches read ahead of the model.
AHEAD = 2

# What libjpeg can divide an image's size by.
_RATIOS = (2, 4, 8)
_MAX_PIXELS = 2**29 // 3


def decode_image(data: tf.Tensor, image_size: int) -> tf.Tensor:
    """Decodes and resizes one encoded image.

    Training, `encode_images` and the exported graph all come through here,
    so that they cannot differ. A JPEG much larger than the result is decoded
    at a half, a quarter or an eighth of its size, which is several times
    faster and smoother than to skip pixels afterwards.

    Args:
        data: Scalar string tensor: a JPEG, PNG, GIF, BMP or WebP file.
        image_size: Height and width of the result.

    Returns:
        float32 tensor `[image_size, image_size, 3]`, RGB in 0..255.
    """
    return resize_image(decode_at_least(data, image_size), image_size)


def decode_at_least(data: tf.Tensor, image_size: int) -> tf.Tensor:
    """Decodes an image at the smallest scale that has at least this size.

    Args:
        data: Scalar string tensor.
        image_size: What height and width are not to fall below. Smaller
            images are decoded as they are.

    Returns:
        uint8 tensor `[height, width, 3]`.
    """
    # Control flow costs: one switch, as an op's ratio is fixed, and what is
    # no JPEG is decoded by the op that takes JPEGs at full scale.
    jpeg = tf.where(tf.io.is_jpeg(data), data, _any_jpeg())
    shape = tf.io.extract_jpeg_shape(jpeg)[:2]
    sizes = tf.constant([ratio * image_size for ratio in _RATIOS])
    scale = tf.math.count_nonzero(tf.reduce_min(shape) >= sizes, dtype=tf.int32)
    # At full scale TensorFlow refuses a header that promises gigabytes; at a
    # reduced one it would pass, and what it promises come out grey.
    pixels = tf.reduce_prod(tf.cast(shape, tf.int64))
    return tf.switch_case(
        tf.where(pixels < _MAX_PIXELS, scale, 0),
        [
            lambda: tf.io.decode_image(
                data, channels=3, expand_animations=False
            ),
            *(
                partial(tf.io.decode_jpeg, data, channels=3, ratio=ratio)
                for ratio in _RATIOS
            ),
        ],
    )


@cache
def _any_jpeg():
    """What is asked for its size where the file is no JPEG."""
    with tf.init_scope():
        return tf.io.encode_jpeg(np.zeros([1, 1, 3], np.uint8)).numpy()


def resize_image(image: tf.Tensor, image_size: int) -> tf.Tensor:
    """Resizes `[height, width, 3]` to a square; the aspect is not kept."""
    # From floats the same pixels come out faster.
    image = tf.cast(image, tf.float32)
    image = tf.image.resize(image, [image_size, image_size])
    return tf.ensure_shape(image, [image_size, image_size, 3])


class StoredImages(Sequence):
    """Encoded images that are read when asked for, such as from records."""

    def read(self, index: int) -> bytes:
        """Returns an image's file; empty if it cannot be read."""
        raise NotImplementedError

    def name(self, index: int) -> str:
        """What to call an image in a message."""
        raise NotImplementedError

    def identity(self, index: int) -> bytes:
        """What changes when the image does."""
        raise NotImplementedError

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self.read(i) for i in range(*index.indices(len(self)))]
        return self.read(range(len(self))[index])


def is_path(image) -> bool:
    """Whether an image is given as the path of a file."""
    return isinstance(image, (str, os.PathLike))


def image_name(images: Sequence, index: int) -> str:
    """What to call one of the images in a message."""
    if isinstance(images, StoredImages):
        return images.name(index)
    image = images[index]
    return f"'{os.fspath(image)}'" if is_path(image) else f"number {index}"


def check_images(images: Sequence) -> Sequence:
    """Makes sure that images are given in a way that can be read.

    No file is opened.

    Args:
        images: Paths, encoded files as `bytes`, or arrays.

    Returns:
        The images; paths as strings.

    Raises:
        ValueError: If a file does not exist, or an array is not an image.
    """
    if isinstance(images, (str, bytes)):
        raise ValueError(
            "Images come in a list. Received one "
            f"{type(images).__name__}: put it into a list."
        )
    if tf.is_tensor(images):
        images = images.numpy()
    if isinstance(images, np.ndarray) and images.dtype.kind in "uif":
        if images.ndim != 4 or images.shape[3] not in (1, 3):
            raise ValueError(
                "Images in one array have the shape [images, height, width, "
                f"3]. Received the shape {images.shape}."
            )
        _check_value_range([images])
        return images
    if isinstance(images, StoredImages):
        return images
    kinds = {_kind(images, index) for index in range(len(images))}
    if len(kinds) > 1:
        raise ValueError(
            "Images are either all paths, all arrays or all bytes. "
            f"Received {' and '.join(sorted(kinds))}."
        )
    if kinds == {"paths"}:
        images = [os.fspath(image) for image in images]
        _check_files_exist(images)
    elif kinds == {"arrays"}:
        images = [np.asarray(image) for image in images]
        _check_value_range(images)
    return images


def _kind(images, index):
    image = images[index]
    if is_path(image):
        return "paths"
    if isinstance(image, bytes):
        return "bytes"
    shape = getattr(image, "shape", None)
    if shape is None or not (
        len(shape) == 2 or len(shape) == 3 and shape[2] in (1, 3)
    ):
        received = type(image).__name__ if shape is None else f"shape {shape}"
        raise ValueError(
            f"Image {index} is neither a path, nor bytes, nor an array "
            f"[height, width, 3]. Received: {received}."
        )
    return "arrays"


def _check_value_range(arrays):
    floats = [array for array in arrays if array.dtype.kind == "f"]
    largest = max((float(np.max(x, initial=0)) for x in floats), default=0)
    if 0 < largest <= 1:
        raise ValueError(
            f"The largest value in the images is {largest:g}, and images hold "
            "values in 0..255. Multiply values in 0..1 by 255."
        )


def _check_files_exist(paths):
    # One listing per folder instead of one look-up per file: on a network
    # drive that is the difference between seconds and minutes.
    listings = {}
    missing = []
    for path in paths:
        folder, name = os.path.split(path)
        if folder not in listings:
            try:
                listings[folder] = set(os.listdir(folder or "."))
            except OSError:
                listings[folder] = set()
        if name not in listings[folder]:
            missing.append(path)
    if missing:
        shown = ", ".join(f"'{path}'" for path in missing[:5])
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise ValueError(
            f"{len(missing)} of {len(paths)} images do not exist: "
            f"{shown}{more}. The working folder is '{os.getcwd()}'."
        )


def image_reader(
    images: Sequence, image_size: int
) -> Callable[[tf.Tensor], tf.Tensor]:
    """Returns a function that reads one of the images by its index.

    Args:
        images: Paths, encoded files as `bytes`, or arrays.
        image_size: Height and width of what the function returns.
    """
    if isinstance(images, StoredImages):
        return lambda index: decode_image(
            tf.numpy_function(images.read, [index], tf.string), image_size
        )
    # On the CPU even where there is a GPU: the input pipeline runs there.
    with tf.device("CPU"):
        if isinstance(images[0], bytes):
            files = tf.constant(list(images))
            return lambda index: decode_image(files[index], image_size)
        if is_path(images[0]):
            paths = tf.constant(images)
            return lambda index: decode_image(
                tf.io.read_file(paths[index]), image_size
            )
        return _array_reader(images, image_size)


def _array_reader(images, image_size):
    # One flat buffer holds arrays of any sizes without padding.
    if isinstance(images, np.ndarray):
        values, shapes = images.reshape(-1), [images.shape[1:]] * len(images)
    else:
        values = np.concatenate([np.ravel(image) for image in images])
        shapes = [image.shape for image in images]
    if values.dtype != np.uint8:
        values = values.astype(np.float32)
    shapes = np.array([(*shape, 1)[:3] for shape in shapes])
    sizes = shapes.prod(axis=1)
    offsets = tf.constant(np.cumsum(sizes) - sizes)
    values, shapes, sizes = map(tf.constant, (values, shapes, sizes))

    def read(index):
        image = tf.slice(values, [offsets[index]], [sizes[index]])
        image = tf.reshape(image, shapes[index])
        # One channel of grey becomes three.
        image = tf.repeat(image, 3 // shapes[index][2], axis=2)
        return resize_image(image, image_size)

    return read


def readable_images(
    images: Sequence,
    image_size: int,
    batch_size: int,
    indices: Sequence[int] | None = None,
) -> tf.data.Dataset:
    """Reads images in order; those that cannot be read are left out.

    Args:
        images: Paths, encoded files as `bytes`, or arrays.
        image_size: Height and width to resize them to.
        batch_size: Images at a time.
        indices: Which of them; by default all.

    Returns:
        A data set of pairs: indices `[n]` and images `[n, h, w, 3]`.
    """
    read = image_reader(images, image_size)
    if indices is None:
        indices = range(len(images))
    return (
        tf.data.Dataset.from_tensor_slices(np.array(indices, np.int64))
        .map(lambda i: (i, read(i)), num_parallel_calls=tf.data.AUTOTUNE)
        .ignore_errors()
        .batch(batch_size)
        .prefetch(AHEAD)
        .with_options(untuned())
    )


def untuned() -> tf.data.Options:
    """Has a pipeline use all cores from the start, and tune nothing.

    TensorFlow's tuner takes a core from the model again and again, and an
    epoch does not end before it does: in a training on two cores, that took
    19 seconds of each.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return options


def image_identities(images: Sequence) -> list[bytes]:
    """Returns for each image what changes when it does.

    That is a file's path, size and time of change, or the content.
    """
    if isinstance(images, StoredImages):
        return [images.identity(i) for i in range(len(images))]
    if is_path(images[0]):
        return [_file_identity(path) for path in images]
    return [_content_identity(image) for image in images]


def _file_identity(path):
    try:
        status = os.stat(path)
        state = f"{status.st_size} {status.st_mtime_ns}"
    except OSError:
        state = "missing"
    return f"{os.path.abspath(path)} {state}".encode()


def _content_identity(image):
    if not isinstance(image, bytes):
        image = np.ascontiguousarray(image)
        shape = f"{image.dtype} {image.shape} ".encode()
        return shape + hashlib.blake2b(image.tobytes()).digest()
    return hashlib.blake2b(image).digest()


def image_bytes(image) -> bytes:
    """Returns an image as an encoded file's bytes; arrays become PNG."""
    if isinstance(image, bytes):
        return image
    if is_path(image):
        return tf.io.read_file(os.fspath(image)).numpy()
    image = np.clip(np.round(image), 0, 255).astype(np.uint8)
    if image.ndim == 2:
        image = image[..., np.newaxis]
    return tf.io.encode_png(image).numpy()
