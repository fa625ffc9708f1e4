import keras
import numpy as np
import pytest
import tensorflow as tf

import kmatch
from kmatch.text.tokenizer import split_words


def words(text):
    return [word.decode() for word in split_words([text])[0].numpy()]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("A dog, a CAT; and (one) bird!", "a dog a cat and one bird"),
        ("the man's t-shirt", "the mans t shirt"),
        ("the man’s shirt", "the mans shirt"),
        ("Straße STRASSE", "strasse strasse"),
        ("ﬁne café", "fine café"),
        ("Кошка СПИТ.", "кошка спит"),
        ("ένα σκυλί τρέχει", "ένα σκυλί τρέχει"),
        ("«ça va»", "ça va"),
        ("a\tb\nc\u00a0d\u2028e\u3000f", "a b c d e f"),
        ("good 👍 dog", "good 👍 dog"),
        ("  ", ""),
        ("", ""),
        ("...!?", ""),
    ],
)
def test_words(text, expected):
    assert words(text) == expected.split()


def test_invalid_utf8_divides_words():
    assert words(b"one\xff\xfetwo \xc3") == ["one", "two"]


def test_vocabulary_by_frequency_then_alphabet():
    tokenizer = kmatch.text.Tokenizer.fit(["b c a", "c b", "c d"], min_count=1)
    assert tokenizer.vocabulary == ["[PAD]", "[UNK]", "c", "b", "a", "d"]


def test_rare_words_are_unknown():
    tokenizer = kmatch.text.Tokenizer.fit(["a a a b b"], min_count=3)
    assert tokenizer(["a b"]).numpy().tolist() == [[2, 1]]


def test_ids_are_padded_on_the_right_and_cut():
    tokenizer = kmatch.text.Tokenizer(["a", "b"], max_length=3)
    ids = tokenizer(["a b a b a", "b", "", "?!", "👍"])
    assert ids.dtype == tf.int32
    assert ids.numpy().tolist() == [
        [2, 3, 2], [3, 0, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0],
    ]  # fmt: skip


def test_same_ids_in_tf_data():
    tokenizer = kmatch.text.Tokenizer(["a", "b"])
    dataset = tf.data.Dataset.from_tensor_slices(["A b.", "b"]).batch(2)
    ids = next(iter(dataset.map(tokenizer)))
    np.testing.assert_array_equal(ids, tokenizer(["A b.", "b"]))


def test_comes_back_from_its_config():
    tokenizer = kmatch.text.Tokenizer(["a", "b"], max_length=7)
    restored = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(tokenizer)
    )
    assert restored.vocabulary == tokenizer.vocabulary
    assert restored.max_length == 7


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: kmatch.text.Tokenizer(["a", "a"]), "'a' more than once"),
        (lambda: kmatch.text.Tokenizer([]), "Lower min_count"),
        (lambda: kmatch.text.Tokenizer(["a"], max_length=0), "at least 1"),
        (lambda: kmatch.text.Tokenizer.fit([]), "at least one caption"),
        (lambda: kmatch.text.Tokenizer(["a"])("a"), "put it into a list"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()
