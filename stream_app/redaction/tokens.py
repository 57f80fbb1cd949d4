"""Words of a text with their places, and what the word lists say of them."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from stream_app.redaction.lexicon import Lexicon

APOSTROPHES: Final = "'’ʼ´`"
WORD: Final = rf"[^\W\d_]+(?:[-{APOSTROPHES}][^\W\d_]+)*"
_WORD = re.compile(WORD)
_CONTRACTION = re.compile(rf"[{APOSTROPHES}][a-z]{{1,2}}$")
MOST_CANDIDATES: Final = 500
_LONGEST: Final = 40
"""Characters of a word that can be a name."""


class Token(NamedTuple):
    """A word without its possessive ending; ``key`` is case-folded."""

    start: int
    end: int
    word: str
    key: str

    @property
    def capital(self) -> bool:
        """Whether it starts with a capital letter."""
        return self.word[0].isupper()


class Tokens:
    """The words of a text; made into tokens one by one, because few can be names.

    ``too_many``: where words lie that can be names, if there are more than anybody looks at.
    """

    def __init__(self, text: str, lexicon: Lexicon) -> None:
        self.text = text
        seen = {word for word in set(_WORD.findall(text)) if _is_candidate(word, lexicon)}
        matches = list(_WORD.finditer(text)) if seen else []
        found = [at for at, match in enumerate(matches) if match.group() in seen]
        self._matches = matches
        self._candidates = found if len(found) <= MOST_CANDIDATES else []
        self.too_many = [matches[at].span() for at in found] if not self._candidates else []

    def candidates(self) -> Iterator[tuple[int, Token]]:
        """Words that can be a name or a place, with their numbers."""
        for at in self._candidates:
            yield at, _token(self._matches[at])

    def from_(self, at: int, most: int) -> Iterator[Token]:
        """The words from this number on."""
        yield from map(_token, self._matches[at : at + most])

    def before(self, at: int) -> Token | None:
        """The word before word ``at``, if only a space or comma is between them."""
        if not at:
            return None
        between = self.text[self._matches[at - 1].end() : self._matches[at].start()]
        return _token(self._matches[at - 1]) if between in {" ", ", ", ". ", "-"} else None


def _token(match: re.Match[str]) -> Token:
    """The word that matched ``WORD``."""
    word = match.group()
    if len(word) > 2 and word[-1] in "sS" and word[-2] in APOSTROPHES:
        word = word[:-2]
    return Token(match.start(), match.start() + len(word), word, word.casefold())


def token_at(text: str, start: int) -> Token | None:
    """The word that begins exactly there."""
    match = _WORD.match(text, start)
    return _token(match) if match else None


def _is_candidate(word: str, lexicon: Lexicon) -> bool:
    bare = word[:-2] if word[-2:-1] and word[-2] in APOSTROPHES else word
    if not word[0].isupper():
        return bare in lexicon.given
    key = bare.casefold()
    if key in lexicon.words:
        return key in lexicon.words_in_names
    return key not in lexicon.not_names


def is_known(key: str, lexicon: Lexicon) -> bool:
    """Whether it is an English word, also a contraction or compound, or no name for sure."""
    if key in lexicon.words or key in lexicon.not_names or len(key) > _LONGEST:
        return True
    if "-" in key:
        return all(part in lexicon.words for part in key.split("-"))
    return bool(_CONTRACTION.search(key))
