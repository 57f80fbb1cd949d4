"""Tokenises batches of texts into ids with character offsets."""

from pathlib import Path

from msgspec import Struct
from tokenizers import Encoding, Tokenizer

MAX_CHARS_PER_TOKEN = 64
"""Text beyond ``max_tokens`` times this is cut before tokenising, to bound its cost."""


class Tokens(Struct, frozen=True):
    """One tokenised text."""

    ids: list[int]
    truncated: bool
    _encoding: Encoding

    @property
    def words(self) -> list[int]:
        """The ids without the special tokens at both ends."""
        return self.ids[1:-1]

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """[start, end) of each token in characters of the original text; (0, 0) if it is special.

        Read on demand: most texts have no rationale, and conversion to Python costs more than
        tokenising.
        """
        return self._encoding.offsets


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
                bool(encoding.overflowing) or len(text) > self._max_chars,
                encoding,
            )
            for text, encoding in zip(texts, self._tokenizer.encode_batch(cut), strict=True)
        ]
