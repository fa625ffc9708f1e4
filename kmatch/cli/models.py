"""The models that subcommands are given."""

import zipfile
from pathlib import Path

import keras

from kmatch.matchers import Matcher


def load_matcher(file: str) -> Matcher:
    """Loads a model that `Matcher.save` wrote."""
    if not Path(file).is_file():
        raise ValueError(f"There is no file '{file}'.")
    if not _is_keras_file(file):
        raise ValueError(
            f"'{file}' is no Keras model, or is damaged. Pass what "
            "model.save('….keras') wrote."
        )
    model = keras.models.load_model(file)
    if not isinstance(model, Matcher):
        raise ValueError(
            f"'{file}' holds a {type(model).__name__}. Pass a saved "
            "kmatch.Matcher."
        )
    return model


def _is_keras_file(file):
    if not zipfile.is_zipfile(file):
        return False
    with zipfile.ZipFile(file) as archive:
        return "config.json" in archive.namelist()
