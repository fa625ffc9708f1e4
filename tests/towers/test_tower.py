import keras
import numpy as np
import pytest

import kmatch


def test_any_model_becomes_a_tower():
    class Brightness(keras.Model):
        def call(self, images):
            return keras.ops.mean(images, axis=(1, 2))

    tower = kmatch.towers.Tower(Brightness(), image_size=4)
    assert tower.output_shape == (None, 3)
    np.testing.assert_allclose(tower(np.full([1, 4, 4, 3], 9.0)), [[9, 9, 9]])


def test_tower_comes_back_with_what_feeds_it(tokenizer):
    tower = kmatch.towers.bilstm(tokenizer, units=4, embedding_dim=4)
    tower.trainable = False
    restored = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(tower)
    )
    assert restored.tokenizer.vocabulary == tokenizer.vocabulary
    assert not restored.trainable
    restored.set_weights(tower.get_weights())
    tokens = tokenizer(["a big red circle"])
    np.testing.assert_allclose(restored(tokens), tower(tokens))


@pytest.mark.parametrize("feeds", [{}, {"image_size": 4, "tokenizer": "x"}])
def test_a_tower_is_fed_by_one_thing(feeds):
    with pytest.raises(ValueError, match="either image_size or tokenizer"):
        kmatch.towers.Tower(keras.Sequential(), **feeds)


def test_a_tower_gives_vectors():
    with pytest.raises(ValueError, match="pool it"):
        kmatch.towers.Tower(
            keras.Sequential([keras.layers.Rescaling(1)]), image_size=4
        )
