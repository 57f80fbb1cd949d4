"""Tokenises batches of texts into ids with character offsets."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from tokenizers import Encoding, Tokenizer

from stream_app.inference import parts

MAX_CHARS_PER_TOKEN = 64
"""Text beyond ``max_tokens`` times this is cut before tokenising, to bound its cost."""

MAX_CHARS: Final = 65_536
"""Text beyond it is cut also if it is read in parts; an event of the wire has no longer one."""
MAX_PARTS: Final = 128


class Tokens(Struct, frozen=True):
    """One tokenised text, or a part of one, which begins at the token ``first``."""

    ids: list[int]
    truncated: bool
    _encoding: Encoding
    first: int = 0

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
        found = self._encoding.offsets
        if len(found) == len(self.ids):
            return found
        return [found[0], *found[self.first + 1 : self.first + len(self.ids) - 1], found[-1]]


class WholeText(Struct, frozen=True):
    """All of a text: ``words`` without special tokens, and the parts that the encoder reads."""

    words: list[int]
    parts: Sequence[Tokens]
    truncated: bool


class TextTokenizer:
    """The bundle's tokeniser."""

    def __init__(self, path: Path, max_tokens: int) -> None:
        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_padding()
        self._whole = Tokenizer.from_file(str(path))
        self._whole.no_padding()
        self._whole.no_truncation()
        self._tokenizer.enable_truncation(max_tokens)
        self._max_tokens = max_tokens
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

    def whole(self, texts: list[str]) -> list[WholeText]:
        """Tokenise; longer texts are in parts, and cut only after ``MAX_PARTS`` of them."""
        encoded = self._whole.encode_batch([text[:MAX_CHARS] for text in texts])
        return [
            self._in_parts(encoding, cut=len(text) > MAX_CHARS)
            for text, encoding in zip(texts, encoded, strict=True)
        ]

    def _in_parts(self, encoding: Encoding, *, cut: bool) -> WholeText:
        ids = encoding.ids
        if len(ids) <= self._max_tokens:
            return WholeText(ids[1:-1], [Tokens(ids, cut, encoding)], cut)
        most = self._max_tokens - 2
        cut = cut or len(ids) > most * MAX_PARTS
        words = ids[1:-1][: most * MAX_PARTS]
        return WholeText(
            words,
            [
                Tokens([ids[0], *words[start:end], ids[-1]], cut, encoding, start)
                for start, end in parts.spans(len(words), most)
            ],
            cut,
        )
