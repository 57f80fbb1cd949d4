"""Tokenises batches of texts into ids with character offsets."""

from pathlib import Path

from msgspec import Struct
from tokenizers import Tokenizer

MAX_CHARS_PER_TOKEN = 64
"""Text beyond ``max_tokens`` times this is cut before tokenising, to bound its cost."""


class Tokens(Struct, frozen=True):
    """One tokenised text; offsets are [start, end) in characters of the original text.

    The special tokens have the offset (0, 0).
    """

    ids: list[int]
    offsets: list[tuple[int, int]]
    truncated: bool


class TextTokenizer:
    """The bundle's tokeniser."""

    def __init__(self, path: Path, max_tokens: int) -> None:
        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        self._max_chars = max_tokens * MAX_CHARS_PER_TOKEN

    def tokenize(self, texts: list[str]) -> list[Tokens]:
        """Tokenise; texts longer than ``max_tokens`` are truncated at the end."""
        cut = [text[: self._max_chars] for text in texts]
        return [
            Tokens(
                encoding.ids,
                encoding.offsets,
                bool(encoding.overflowing) or len(text) > self._max_chars,
            )
            for text, encoding in zip(texts, self._tokenizer.encode_batch(cut), strict=True)
        ]
