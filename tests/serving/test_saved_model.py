import io
import json
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import kmatch
from kmatch.matchers import SavedMatcher


def jpeg(array, mode="RGB", format="JPEG"):
    buffer = io.BytesIO()
    Image.fromarray(array).convert(mode).save(buffer, format)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def files(scenes, unseen):
    """A hundred images of all kinds, encoded."""
    arrays = [*unseen.images, *scenes.images[:28]]
    files = [jpeg(array) for array in arrays]
    files += [jpeg(array, "L") for array in arrays[:2]]
    files += [jpeg(array, "CMYK") for array in arrays[:2]]
    files += [jpeg(array, format="PNG") for array in arrays[:2]]
    files += [jpeg(arrays[0][:1, :1]), jpeg(arrays[1][:2, :3])]
    return files


@pytest.fixture(scope="module")
def texts(unseen):
    return [
        *unseen.captions[:94],
        "",
        "?!",
        "👍",
        "Große Ñandú",
        "zzz",
        "a" * 500,
    ]


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory):
    directory = tmp_path_factory.mktemp("exported")
    kmatch.export(trained, directory)
    return directory


SERVE = """
import sys
import numpy as np
import tensorflow as tf
import tensorflow_text

inputs = np.load(sys.argv[2], allow_pickle=True)
files, texts = list(inputs["files"]), list(inputs["texts"])
signatures = tf.saved_model.load(sys.argv[1]).signatures
files, texts = tf.constant(files), tf.constant(texts)
np.savez(
    sys.argv[3],
    images=signatures["encode_image"](image_bytes=files)["embedding"],
    texts=signatures["encode_text"](text=texts)["embedding"],
    default=signatures["serving_default"](text=texts)["embedding"],
    match=signatures["match"](image_bytes=files, text=texts)["similarity"],
)
assert not any(name.split(".")[0] == "kmatch" for name in sys.modules)
"""


@pytest.mark.slow
def test_a_process_without_kmatch_gives_the_same(
    trained, exported, files, texts, tmp_path
):
    assert len(files) == len(texts) == 100
    np.savez(
        tmp_path / "in.npz",
        files=np.array(files, object),
        texts=np.array(texts, object),
    )
    subprocess.run(
        [
            sys.executable, "-c", SERVE,
            exported / "1", tmp_path / "in.npz", tmp_path / "out.npz",
        ],
        check=True,
        cwd=tmp_path,
    )  # fmt: skip
    served = np.load(tmp_path / "out.npz")
    images, encoded = trained.encode_images(files), trained.encode_texts(texts)
    np.testing.assert_allclose(served["images"], images, atol=1e-5)
    np.testing.assert_allclose(served["texts"], encoded, atol=1e-5)
    np.testing.assert_allclose(served["default"], encoded, atol=1e-5)
    np.testing.assert_allclose(served["match"], images @ encoded.T, atol=1e-5)
    # The inputs differ, and so do their embeddings.
    for embeddings in (images, encoded):
        assert (embeddings @ embeddings.T).std() > 0.05


def test_signatures_are_those_of_the_design(exported):
    signatures = tf.saved_model.load(exported / "1").signatures
    assert set(signatures) == {
        "encode_image", "encode_text", "match", "serving_default",
    }  # fmt: skip
    inputs = {
        name: {key: spec.dtype for key, spec in kwargs.items()}
        for name, function in signatures.items()
        for kwargs in [function.structured_input_signature[1]]
    }
    assert inputs["encode_image"] == {"image_bytes": tf.string}
    assert inputs["encode_text"] == inputs["serving_default"]
    assert inputs["match"] == {"image_bytes": tf.string, "text": tf.string}


def test_the_graph_holds_no_cudnn_op_and_no_classifier(exported, trained):
    loaded = tf.saved_model.load(exported / "1")
    graph = loaded.signatures["match"].graph.as_graph_def()
    ops = {node.op for node in graph.node}
    for function in graph.library.function:
        ops |= {node.op for node in function.node_def}
    assert not [op for op in ops if "Cudnn" in op]
    classifier = tuple(trained.matching_losses[1].kernel.shape)
    variables = tf.train.list_variables(
        str(exported / "1" / "variables" / "variables")
    )
    assert classifier not in [tuple(shape) for _, shape in variables]


def test_layers_keep_their_cudnn_setting(trained, tmp_path):
    lstm = trained.text_tower.model.layers[3].forward_layer
    kmatch.export(trained, tmp_path)
    assert lstm.use_cudnn == "auto"


def test_versions_follow_one_another(trained, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "7").mkdir()
    assert kmatch.export(trained, tmp_path).name == "8"
    assert kmatch.export(trained, tmp_path).name == "9"
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "7",
        "8",
        "9",
        "notes",
    ]
    metadata = json.loads((tmp_path / "9" / "kmatch.json").read_text())
    assert metadata["format_version"] == 1


def test_a_failed_export_leaves_nothing(trained, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError("no space left")

    monkeypatch.setattr(tf.saved_model, "save", fail)
    with pytest.raises(OSError, match="no space left"):
        kmatch.export(trained, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_exported_model_is_evaluated_like_the_model(
    trained, exported, unseen
):
    ours = kmatch.evaluate(trained, unseen)
    theirs = kmatch.evaluate(exported, unseen)
    assert dict(theirs) == pytest.approx(dict(ours), abs=1e-3)


def test_an_exported_model_leaves_out_what_it_cannot_read(exported, files):
    matcher = SavedMatcher(exported)
    broken = [*files[:5], b"no image", *files[5:9], b""]
    embeddings, readable = matcher.encode_readable_images(broken)
    assert readable.tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    expected, _ = matcher.encode_readable_images(files[:9])
    np.testing.assert_allclose(embeddings, expected, atol=1e-6)


def test_an_exported_model_leaves_out_what_is_no_file(exported, tmp_path):
    _, readable = SavedMatcher(exported).encode_readable_images([tmp_path])
    assert len(readable) == 0


def test_an_exported_model_takes_no_texts_at_all(exported):
    signatures = tf.saved_model.load(exported / "1").signatures
    empty = signatures["encode_text"](text=tf.constant([], tf.string))
    assert empty["embedding"].shape == (0, 32)


def test_only_a_matcher_is_exported(tmp_path):
    with pytest.raises(ValueError, match="Received: Sequential"):
        kmatch.export(keras.Sequential(), tmp_path)


def test_a_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(ValueError, match="holds no exported model"):
        SavedMatcher(tmp_path)
