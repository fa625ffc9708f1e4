"""Text to token ids."""

from kmatch.text.tokenizer import Tokenizer as Tokenizer
