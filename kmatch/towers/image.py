"""Image towers over the backbones of `keras.applications`."""

import hashlib
import os
import warnings

import h5py
import keras
import numpy as np

from kmatch.towers.tower import Tower


def mobilenet(
    image_size: int = 224,
    alpha: float = 1.0,
    weights: str | os.PathLike | None = "imagenet",
    kernel_regularizer: keras.Regularizer | None = None,
    batch_norm_momentum: float = 0.99,
) -> Tower:
    """MobileNet v1 up to its average pooling (Howard et al., 2017).

    Args:
        image_size: Height and width of the images, from 32 on.
        alpha: Width: the number of channels is multiplied by it.
        weights: `"imagenet"`, which Keras fetches; the path of a weights
            file without top; or None for random weights, with which the
            network starts close to linear.
        kernel_regularizer: For the convolutions' kernels, depthwise ones
            excepted, e.g. `keras.regularizers.L2(2e-5)`.
        batch_norm_momentum: How slowly the statistics of its batch
            normalisation move; 0.9 for a short training from random weights,
            which Keras's 0.99 would lag behind.

    Returns:
        A `Tower` that gives `1024 * alpha` features.

    >>> import kmatch
    >>> tower = kmatch.towers.mobilenet(64, alpha=0.25, weights=None)
    >>> tower.output_shape
    (None, 256)
    """
    tower = _image_tower(
        keras.applications.MobileNet, "tf", image_size, weights,
        kernel_regularizer, alpha=alpha,
    )  # fmt: skip
    for layer in _batch_norms(tower):
        layer.momentum = batch_norm_momentum
    if weights is None:
        _start_near_linear(tower)
    return tower


def resnet50(
    image_size: int = 224,
    weights: str | os.PathLike | None = "imagenet",
    kernel_regularizer: keras.Regularizer | None = None,
) -> Tower:
    """ResNet-50 up to its average pooling (He et al., 2016): 2048 features.

    The arguments are those of `kmatch.towers.mobilenet`.

    >>> import kmatch
    >>> kmatch.towers.resnet50(32, weights=None).output_shape
    (None, 2048)
    """
    return _image_tower(
        keras.applications.ResNet50, "caffe", image_size, weights,
        kernel_regularizer,
    )  # fmt: skip


def resnet152(
    image_size: int = 224,
    weights: str | os.PathLike | None = "imagenet",
    kernel_regularizer: keras.Regularizer | None = None,
) -> Tower:
    """ResNet-152 up to its average pooling (He et al., 2016): 2048 features.

    The arguments are those of `kmatch.towers.mobilenet`.

    >>> import kmatch
    >>> kmatch.towers.resnet152(32, weights=None).output_shape
    (None, 2048)
    """
    return _image_tower(
        keras.applications.ResNet152, "caffe", image_size, weights,
        kernel_regularizer,
    )  # fmt: skip


def vgg16(
    image_size: int = 224,
    weights: str | os.PathLike | None = "imagenet",
    kernel_regularizer: keras.Regularizer | None = None,
) -> Tower:
    """VGG-16's convolutions, averaged (Simonyan & Zisserman): 512 features.

    The arguments are those of `kmatch.towers.mobilenet`.

    >>> import kmatch
    >>> kmatch.towers.vgg16(32, weights=None).output_shape
    (None, 512)
    """
    return _image_tower(
        keras.applications.VGG16, "caffe", image_size, weights,
        kernel_regularizer,
    )  # fmt: skip


def vgg19(
    image_size: int = 224,
    weights: str | os.PathLike | None = "imagenet",
    kernel_regularizer: keras.Regularizer | None = None,
) -> Tower:
    """VGG-19's convolutions, averaged (Simonyan & Zisserman): 512 features.

    The arguments are those of `kmatch.towers.mobilenet`.

    >>> import kmatch
    >>> kmatch.towers.vgg19(32, weights=None).output_shape
    (None, 512)
    """
    return _image_tower(
        keras.applications.VGG19, "caffe", image_size, weights,
        kernel_regularizer,
    )  # fmt: skip


@keras.saving.register_keras_serializable(package="kmatch")
class ImagePreprocessing(keras.layers.Layer):
    """`preprocess_input` of the backbone whose weights are loaded.

    Args:
        mode: `"tf"` scales to -1..1, `"caffe"` swaps to BGR and subtracts
            ImageNet's means.

    >>> import numpy as np
    >>> from kmatch.towers.image import ImagePreprocessing
    >>> white = np.full([1, 1, 1, 3], 255.0)
    >>> ImagePreprocessing("tf")(white).numpy().ravel()
    array([1., 1., 1.], dtype=float32)
    """

    def __init__(self, mode: str, **kwargs):
        # 0..255 has too many values for a half-precision mantissa.
        super().__init__(**{**kwargs, "dtype": "float32"})
        self.mode = mode

    def call(self, images):
        return keras.applications.imagenet_utils.preprocess_input(
            images, data_format="channels_last", mode=self.mode
        )

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "mode": self.mode}


def _image_tower(
    application, mode, image_size, weights, kernel_regularizer, **kwargs
):
    imagenet = weights == "imagenet"
    backbone = _build(
        application, weights="imagenet" if imagenet else None,
        input_shape=[image_size, image_size, 3], **kwargs,
    )  # fmt: skip
    if weights is not None and not imagenet:
        load_weights(backbone, weights)
    if kernel_regularizer is not None:
        _regularize_kernels(backbone, kernel_regularizer)
    images = keras.Input([image_size, image_size, 3])
    features = backbone(ImagePreprocessing(mode)(images))
    model = keras.Model(images, features, name=backbone.name)
    return Tower(model, image_size=image_size)


def _build(application, weights, **kwargs):
    try:
        # Keras warns that weights for 224 px are loaded at other sizes: that
        # is what is wanted, the convolutions do not depend on the size.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "`input_shape` is undefined")
            return application(
                include_top=False, pooling="avg", weights=weights, **kwargs
            )
    except Exception as error:
        if "URL fetch failure" not in str(error):
            raise
        raise ConnectionError(
            "The ImageNet weights could not be fetched: "
            f"{error}. Fetch that file on a machine with network access and "
            "pass its path as weights=…, or weights=None for random weights."
        ) from None


def load_weights(backbone: keras.Model, path: str | os.PathLike):
    """Loads a weights file and makes sure that all of it went in.

    Args:
        backbone: A model.
        path: A `.h5` or `.weights.h5` file of the same model.

    Raises:
        ValueError: If the file is missing, belongs to another model, or does
            not hold each of the model's weights.
    """
    path = os.fspath(path)
    if not os.path.isfile(path):
        raise ValueError(
            f"There is no weights file '{path}'. Pass weights='imagenet', the "
            "path of a .h5 file without top, or None for random weights."
        )
    try:
        # Keras warns, a line per layer, about what it leaves at its random
        # values; here that is an error, raised below.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            backbone.load_weights(path)
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"'{path}' does not fit {backbone.name}: is it for another "
            "width, another architecture or one with top? Keras says: "
            f"{reason}"
        ) from error
    in_file = _fingerprints(path)
    missing = [
        variable.path
        for variable in backbone.variables
        if _fingerprint(variable.numpy()) not in in_file
    ]
    if missing:
        shown = ", ".join(missing[:3])
        raise ValueError(
            f"{len(missing)} of {len(backbone.variables)} weights of "
            f"{backbone.name} are not in '{path}', so they would stay random: "
            f"{shown}{', …' if len(missing) > 3 else ''}. Pass a whole file."
        )


def _fingerprints(path):
    found = set()

    def visit(_, item):
        if isinstance(item, h5py.Dataset):
            found.add(_fingerprint(np.asarray(item)))

    with h5py.File(path) as file:
        file.visititems(visit)
    return found


def _fingerprint(array):
    return array.shape, hashlib.sha1(array.astype("float32").tobytes()).digest()


def _start_near_linear(tower):
    # 27 layers of batch normalisation and ReLU6 without a shortcut scramble
    # their input: random features tell nothing of it, and hundreds of steps
    # go by before any is learned. With the means shifted into ReLU6's linear
    # range, they start as averages of the image.
    for layer in _batch_norms(tower):
        layer.beta.assign(keras.ops.ones_like(layer.beta))


def _batch_norms(tower):
    layers = tower._flatten_layers()
    kind = keras.layers.BatchNormalization
    return [layer for layer in layers if isinstance(layer, kind)]


def _regularize_kernels(backbone, regularizer):
    for layer in backbone.layers:
        if isinstance(layer, keras.layers.Conv2D):
            # The variable's counts now, the layer's when loaded from a file.
            layer.kernel.regularizer = regularizer
            layer.kernel_regularizer = regularizer
