"""Image-text matching for Keras 3 on TensorFlow."""

import os

# TensorFlow logs to the terminal what no user can act on; without a GPU even
# its absence, as an error. Whoever wants to see it sets the variable.
os.environ.setdefault(
    "TF_CPP_MIN_LOG_LEVEL", "2" if os.path.exists("/dev/nvidia0") else "3"
)

import keras

if keras.backend.backend() != "tensorflow":
    raise ImportError(
        "kmatch runs on TensorFlow, and Keras is set to use "
        f"'{keras.backend.backend()}'. Set KERAS_BACKEND=tensorflow before "
        "Keras is imported."
    )

from kmatch import callbacks as callbacks
from kmatch import data as data
from kmatch import losses as losses
from kmatch import retrieval as retrieval
from kmatch import text as text
from kmatch import towers as towers
from kmatch.matchers import AdversarialMatcher as AdversarialMatcher
from kmatch.matchers import Matcher as Matcher
from kmatch.retrieval import evaluate as evaluate
from kmatch.serving import export as export
from kmatch.version import __version__ as __version__
