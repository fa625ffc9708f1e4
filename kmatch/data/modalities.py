"""The modalities, and the names under which a batch holds them."""

from typing import NamedTuple


class Modality(NamedTuple):
    """Keys of one modality in a batch and in a model's output."""

    name: str
    input: str
    features: str
    label: str


IMAGE = Modality("image", "image", "image_features", "image_label")
TEXT = Modality("text", "tokens", "text_features", "text_label")
