import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import keras
import pytest
import tensorflow as tf

RECIPE = Path(__file__).parents[2] / "recipes" / "flickr30k_mobilenet.py"

# What TensorFlow prints before anybody can ask it not to.
TENSORFLOW = re.compile(
    r"(WARNING: All log messages before absl::InitializeLog|I0000 "
    r"|To enable the following instructions:)"
)


def command(*arguments):
    return [sys.executable, str(RECIPE), *map(str, arguments)]


def run(*arguments):
    process = subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=600
    )
    assert process.returncode == 0, process.stderr
    noise = [
        line
        for line in process.stderr.splitlines()
        if not TENSORFLOW.match(line)
    ]
    assert noise == []
    return process.stdout


@pytest.fixture
def flickr30k(shapes, tmp_path):
    """A dozen scenes in the layout of Flickr30K."""
    root = tmp_path / "flickr30k"
    (root / "flickr30k-images").mkdir(parents=True)
    entries = []
    for i in range(12):
        name = f"{i}.jpg"
        data = tf.io.encode_jpeg(shapes.val.images[i]).numpy()
        (root / "flickr30k-images" / name).write_bytes(data)
        captions = shapes.val.captions[5 * i : 5 * i + 5]
        entries.append(
            {
                "filename": name,
                "split": ["train", "train", "val", "test"][i % 4],
                "sentences": [{"raw": caption} for caption in captions],
            }
        )
    (root / "dataset_flickr30k.json").write_text(
        json.dumps({"images": entries})
    )
    return root


@pytest.mark.slow
def test_embedded_data_and_resuming_after_a_kill(tmp_path):
    output = tmp_path / "model"
    arguments = ["--output", output, "--epochs", 2]
    process = subprocess.Popen(
        command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    last = output / "checkpoint" / "last.keras"
    while not last.exists():
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.communicate()

    shown = run(*arguments, "--resume")
    assert "embedded data set 'shapes'" in shown.splitlines()[0]
    assert "--data-dir" in shown.splitlines()[0]
    assert "Resuming after epoch 1." in shown
    assert "Epoch 2/2" in shown and "Epoch 1/2" not in shown
    for name in ("i2t_r1", "i2t_r5", "i2t_r10", "t2i_r1", "t2i_r10", "rsum"):
        assert f"val_{name}:" in shown
    assert "500 images, 2500 captions" in shown
    assert "40.3  66.9  76.7" in shown
    assert (output / "1" / "saved_model.pb").exists()
    history = json.loads((output / "checkpoint" / "history.json").read_text())
    assert len(history) == 2


@pytest.mark.slow
def test_real_layout_from_a_weights_file(flickr30k, tmp_path):
    weights = tmp_path / "mobilenet.weights.h5"
    keras.applications.MobileNet(
        include_top=False, weights=None, input_shape=[224, 224, 3]
    ).save_weights(weights)
    process = subprocess.run(
        command(
            "--data-dir", flickr30k, "--image-weights", weights,
            "--epochs", 1, "--batch-size", 4, "--output", tmp_path / "model",
        ),
        capture_output=True,
        text=True,
        timeout=600,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert "embedded" not in process.stdout
    assert "3 images, 15 captions" in process.stdout
    assert (tmp_path / "model" / "1" / "saved_model.pb").exists()
    # Twelve images are not the published 31,014.
    assert "published are 29000 and 145000" in process.stderr
