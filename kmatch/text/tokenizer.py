"""The tokenizer: raw strings to token ids, in the graph."""

from collections import Counter
from collections.abc import Iterable, Sequence

import keras
import tensorflow as tf

PADDING = 0
UNKNOWN = 1
RESERVED = ("[PAD]", "[UNK]")

# Apostrophes join what they stand between ("man's" is one word); all other
# punctuation, ASCII symbols, separators and control characters divide. Emoji
# are symbols too, but carry meaning and stay.
_JOINING = r"['’ʼ`]"
_DIVIDING = r"[\p{P}\p{Z}\p{Cc}$+<=>^|~]"


def as_utf8(texts: Iterable[str | bytes]) -> list[bytes]:
    """Encodes strings; half of a surrogate pair becomes a question mark.

    Raises:
        ValueError: Naming the first that is no string.

    >>> from kmatch.text.tokenizer import as_utf8
    >>> as_utf8(["dög", "half an emoji: \\ud83d"])
    [b'd\\xc3\\xb6g', b'half an emoji: ?']
    """
    encoded = []
    for place, text in enumerate(texts):
        if isinstance(text, str):
            text = text.encode(errors="replace")
        if not isinstance(text, bytes):
            raise ValueError(f"Text {place} is not a string. Received: {text}.")
        encoded.append(text)
    return encoded


def split_words(texts: tf.Tensor) -> tf.RaggedTensor:
    """Splits strings into normalised words.

    Unicode is normalised (NFKC), case folded and punctuation stripped. Bytes
    that are not UTF-8 divide words.

    Args:
        texts: String tensor `[n]`.

    Returns:
        Ragged string tensor `[n, (words)]`.

    >>> from kmatch.text.tokenizer import split_words
    >>> [w.decode() for w in split_words(["A man's red T-shirt!"])[0].numpy()]
    ['a', 'mans', 'red', 't', 'shirt']
    """
    # Only where it is needed: it takes longer to import than all of kmatch.
    import tensorflow_text as tf_text

    texts = tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="replace", replacement_char=ord(" ")
    )
    texts = tf_text.normalize_utf8(tf_text.case_fold_utf8(texts), "NFKC")
    texts = tf.strings.regex_replace(texts, _JOINING, "")
    texts = tf.strings.regex_replace(texts, _DIVIDING, " ")
    return tf.strings.split(texts)


@keras.saving.register_keras_serializable(package="kmatch")
class Tokenizer:
    """Turns captions into padded token ids, the same everywhere.

    The same TensorFlow ops run in the input pipeline, in `encode_texts` and
    in the exported graph, so that training and serving cannot differ. Id 0 is
    padding, id 1 a word that is not in the vocabulary; the others follow by
    falling frequency. Any language written with spaces works.

    Args:
        vocabulary: Words, the most frequent first, without the two reserved
            ones.
        max_length: Captions are cut after this many words.

    >>> import kmatch
    >>> tokenizer = kmatch.text.Tokenizer.fit(
    ...     ["A dog runs.", "A dog sleeps."], min_count=2
    ... )
    >>> tokenizer.vocabulary
    ['[PAD]', '[UNK]', 'a', 'dog']
    >>> tokenizer(["The dog", "a dog!", ""]).numpy()
    array([[1, 3],
           [2, 3],
           [1, 0]], dtype=int32)
    """

    def __init__(self, vocabulary: Sequence[str], max_length: int = 100):
        if max_length < 1:
            raise ValueError(
                f"max_length must be at least 1. Received: {max_length}."
            )
        self._words = [str(word) for word in vocabulary]
        if not self._words:
            raise ValueError(
                "The vocabulary is empty: no word is frequent enough. "
                "Lower min_count or pass more captions."
            )
        if len(set(self._words)) < len(self._words):
            repeated = Counter(self._words).most_common(1)[0][0]
            raise ValueError(
                "A vocabulary holds each word once. Received "
                f"'{repeated}' more than once."
            )
        self.max_length = int(max_length)
        self._table = None

    @classmethod
    def fit(
        cls,
        captions: Iterable[str],
        min_count: int = 3,
        max_length: int = 100,
    ) -> "Tokenizer":
        """Builds a tokenizer from the captions of the training split.

        Args:
            captions: Strings. Never those of the test split.
            min_count: Rarer words are unknown.
            max_length: Captions are cut after this many words.
        """
        captions = list(captions)
        if not captions:
            raise ValueError("fit needs at least one caption. Received none.")
        counts = Counter()
        # The words of a block at a time, so that all the strings of a large
        # data set are never held twice.
        for start in range(0, len(captions), 10_000):
            words = split_words(as_utf8(captions[start : start + 10_000]))
            counts.update(words.flat_values.numpy().tolist())
        # Words of equal count in alphabetical order: the same captions give
        # the same ids in whatever order they come.
        frequent = sorted(
            (-count, word.decode())
            for word, count in counts.items()
            if count >= min_count
        )
        return cls([word for _, word in frequent], max_length)

    @property
    def vocabulary(self) -> list[str]:
        """All words by id, the two reserved ones first."""
        return [*RESERVED, *self._words]

    @property
    def table(self) -> tf.lookup.StaticHashTable:
        """The look-up table from words to ids, made when first needed."""
        if self._table is None:
            # Outside whatever graph is being traced: the table outlives it.
            with tf.init_scope():
                self._table = tf.lookup.StaticHashTable(
                    tf.lookup.KeyValueTensorInitializer(
                        tf.constant(self._words, tf.string),
                        tf.range(
                            len(RESERVED),
                            len(RESERVED) + len(self._words),
                            dtype=tf.int32,
                        ),
                    ),
                    default_value=UNKNOWN,
                )
        return self._table

    def ragged(self, texts) -> tf.RaggedTensor:
        """Returns the ids of each text without padding or cut."""
        if not tf.is_tensor(texts):
            texts = tf.constant(as_utf8(texts), tf.string)
        words = split_words(texts)
        ids = words.with_flat_values(self.table.lookup(words.flat_values))
        # A text without a token becomes one unknown token: no row is ever
        # fully masked, which cuDNN refuses.
        empty = ids.row_lengths() == 0
        filler = tf.RaggedTensor.from_row_lengths(
            tf.fill([tf.math.count_nonzero(empty)], UNKNOWN),
            tf.cast(empty, tf.int64),
        )
        return tf.concat([ids, filler], axis=1)

    def __call__(self, texts) -> tf.Tensor:
        """Turns texts into ids.

        Args:
            texts: List or tensor of `n` strings.

        Returns:
            int32 tensor `[n, length of the longest]`, padded on the right.
        """
        if isinstance(texts, (str, bytes)):
            raise ValueError(
                "A tokenizer takes a list of strings. Received the one "
                f"string {texts!r}: put it into a list."
            )
        ids = self.ragged(texts)[:, : self.max_length].to_tensor(PADDING)
        # Recurrent layers take no texts, but not texts of no length.
        missing = tf.maximum(1 - tf.shape(ids)[1], 0)
        return tf.pad(ids, [[0, 0], [0, missing]], constant_values=PADDING)

    def get_config(self):
        return {"vocabulary": self._words, "max_length": self.max_length}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def __repr__(self):
        return f"Tokenizer(vocabulary of {len(self.vocabulary)} words)"
