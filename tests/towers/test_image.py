import h5py
import keras
import numpy as np
import pytest

import kmatch
from kmatch.towers.image import ImagePreprocessing

PIXELS = np.random.default_rng(0).uniform(0, 255, [2, 32, 32, 3])


@pytest.mark.parametrize(
    "tower, application, features",
    [
        ("resnet50", keras.applications.resnet, 2048),
        ("vgg16", keras.applications.vgg16, 512),
        ("mobilenet", keras.applications.mobilenet, 1024),
    ],
)
def test_preprocessing_is_that_of_the_backbone(tower, application, features):
    tower = getattr(kmatch.towers, tower)(32, weights=None)
    backbone = tower.model.layers[-1]
    expected = backbone(application.preprocess_input(PIXELS.copy()))
    np.testing.assert_allclose(tower(PIXELS), expected, rtol=1e-4, atol=1e-5)
    assert tower.output_shape == (None, features)


def test_preprocessing_stays_in_single_precision():
    keras.config.set_dtype_policy("mixed_float16")
    try:
        layer = ImagePreprocessing("tf")
    finally:
        keras.config.set_dtype_policy("float32")
    assert layer(PIXELS).dtype == "float32"


@pytest.fixture(params=["x.weights.h5", "x.h5"])
def weights(request, tmp_path):
    """A weights file as Keras writes it now, and as it used to."""
    backbone = keras.applications.MobileNet(
        alpha=0.25, include_top=False, weights=None, input_shape=[32, 32, 3]
    )
    path = tmp_path / request.param
    if request.param == "x.h5":
        _save_legacy(backbone, path)
    else:
        backbone.save_weights(path)
    return path, backbone


def _save_legacy(model, path):
    with h5py.File(path, "w") as file:
        file.attrs["layer_names"] = [layer.name for layer in model.layers]
        file.attrs["backend"] = "tensorflow"
        file.attrs["keras_version"] = "2.0.0"
        for layer in model.layers:
            group = file.create_group(layer.name)
            names = [f"{layer.name}/{w.name}:0" for w in layer.weights]
            group.attrs["weight_names"] = names
            for name, weight in zip(names, layer.weights):
                group[name] = weight.numpy()


def test_weights_from_a_path(weights):
    path, backbone = weights
    tower = kmatch.towers.mobilenet(32, alpha=0.25, weights=path)
    loaded = tower.model.layers[-1].get_weights()
    for ours, theirs in zip(loaded, backbone.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_weights_of_another_width_are_refused(weights):
    path, _ = weights
    with pytest.raises(ValueError, match="another width"):
        kmatch.towers.mobilenet(32, alpha=0.5, weights=path)


def test_weights_without_one_layer_are_refused(weights):
    path, _ = weights
    with h5py.File(path, "a") as file:
        if "layers" in file:
            del file["layers/conv2d_3"]
        else:
            del file["conv_pw_3"]
    with pytest.raises(ValueError, match=path.name):
        kmatch.towers.mobilenet(32, alpha=0.25, weights=path)


def test_weights_that_keras_would_leave_random_are_refused(
    weights, monkeypatch
):
    # Whatever a loader passes over, each weight is looked up in the file.
    path, _ = weights
    monkeypatch.setattr(keras.Model, "load_weights", lambda *_: None)
    with pytest.raises(ValueError, match="would stay random"):
        kmatch.towers.mobilenet(32, alpha=0.25, weights=path)


def test_missing_weights_file_is_named():
    with pytest.raises(ValueError, match="no weights file 'no/such.h5'"):
        kmatch.towers.mobilenet(32, weights="no/such.h5")


def test_imagenet_without_network_says_how_to_pass_a_file(monkeypatch):
    def offline(*args, **kwargs):
        raise Exception("URL fetch failure on https://x/y.h5: None -- offline")

    monkeypatch.setattr(keras.applications, "MobileNet", offline)
    with pytest.raises(ConnectionError, match="pass its path as weights="):
        kmatch.towers.mobilenet(32)


def test_kernel_regularizer_survives_saving():
    regularizer = keras.regularizers.L2(2e-5)
    tower = kmatch.towers.mobilenet(
        32, alpha=0.25, weights=None, kernel_regularizer=regularizer
    )
    restored = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(tower)
    )
    restored.set_weights(tower.get_weights())
    # The first convolution and 13 pointwise ones.
    assert len(tower.losses) == len(restored.losses) == 14
    np.testing.assert_allclose(sum(tower.losses), sum(restored.losses))


@pytest.mark.parametrize(
    "alpha, name",
    [
        (0.75, "mobilenet_7_5_224_tf_no_top.weights.h5"),
        (0.25, "mobilenet_2_5_224_tf_no_top.h5"),
    ],
)
def test_real_weights_give_the_features_of_keras(shared, alpha, name):
    path = shared / "weights" / name
    tower = kmatch.towers.mobilenet(224, alpha=alpha, weights=path)
    keras_model = keras.applications.MobileNet(
        alpha=alpha,
        include_top=False,
        weights=str(path),
        input_shape=[224, 224, 3],
        pooling="avg",
    )
    images = np.random.default_rng(0).uniform(0, 255, [2, 224, 224, 3])
    expected = keras_model(
        keras.applications.mobilenet.preprocess_input(images.copy())
    )
    np.testing.assert_allclose(tower(images), expected, rtol=1e-4, atol=1e-5)


def test_batch_norm_momentum_is_saved():
    tower = kmatch.towers.mobilenet(
        32, alpha=0.25, weights=None, batch_norm_momentum=0.9
    )
    copy = kmatch.towers.Tower.from_config(tower.get_config())
    momenta = {
        layer.momentum
        for layer in copy._flatten_layers()
        if isinstance(layer, keras.layers.BatchNormalization)
    }
    assert momenta == {0.9}
