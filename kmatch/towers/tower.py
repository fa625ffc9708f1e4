"""A tower: one modality's raw features in, its features out."""

import keras

from kmatch.text.tokenizer import Tokenizer


@keras.saving.register_keras_serializable(package="kmatch")
class Tower(keras.Model):
    """A Keras model together with what feeds it.

    An image tower takes images `[n, image_size, image_size, 3]`, RGB in
    0..255; a text tower takes token ids `[n, length]`, 0 being padding. Both
    give features `[n, d]`. Saved with the model, `image_size` or the
    tokenizer make sure that it is always fed the same way.

    Args:
        model: Any Keras model that maps the one to the other.
        image_size: Height and width of the images, for an image tower.
        tokenizer: `kmatch.text.Tokenizer`, for a text tower.

    >>> import keras
    >>> import kmatch
    >>> pixels = keras.Sequential(
    ...     [keras.layers.Rescaling(1 / 255), keras.layers.Flatten()]
    ... )
    >>> kmatch.towers.Tower(pixels, image_size=8).output_shape
    (None, 192)
    """

    def __init__(
        self,
        model: keras.Model,
        image_size: int | None = None,
        tokenizer: Tokenizer | None = None,
        **kwargs,
    ):
        if (image_size is None) == (tokenizer is None):
            raise ValueError(
                "A tower is fed by images or by text: pass either image_size "
                f"or tokenizer. Received image_size={image_size} and "
                f"tokenizer={tokenizer}."
            )
        # === Functional model ===
        if tokenizer is None:
            inputs = keras.Input([image_size, image_size, 3])
            kwargs.setdefault("name", "image_tower")
        else:
            inputs = keras.Input([None], dtype="int32")
            kwargs.setdefault("name", "text_tower")
        outputs = model(inputs)
        if len(outputs.shape) != 2 or outputs.shape[1] is None:
            raise ValueError(
                "A tower gives one feature vector per item: [n, d]. "
                f"'{model.name}' gives {outputs.shape}; pool it."
            )
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Config ===
        self.model = model
        self.image_size = image_size
        self.tokenizer = tokenizer

    def get_config(self):
        return {
            "model": keras.saving.serialize_keras_object(self.model),
            "image_size": self.image_size,
            "tokenizer": keras.saving.serialize_keras_object(self.tokenizer),
            "name": self.name,
            "trainable": self.trainable,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        for key in ("model", "tokenizer"):
            config[key] = keras.saving.deserialize_keras_object(
                config[key], custom_objects=custom_objects
            )
        trainable = config.pop("trainable", True)
        tower = cls(**config)
        if not trainable:
            tower.trainable = False
        return tower
