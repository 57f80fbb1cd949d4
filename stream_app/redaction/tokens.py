"""Words of a text with their places, and what the word lists say of them."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from stream_app.redaction.lexicon import Lexicon

APOSTROPHES: Final = "'’ʼ´`"
WORD: Final = rf"[^\W\d_]+(?:[-{APOSTROPHES}][^\W\d_]+)*"
_WORD = re.compile(WORD)
_POSSESSIVE = re.compile(rf"[{APOSTROPHES}][sS]$")
_CONTRACTION = re.compile(rf"[{APOSTROPHES}](?:[a-z]{{1,2}})$")
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


def token(match: re.Match[str]) -> Token:
    """The word that matched ``WORD``."""
    word = _POSSESSIVE.sub("", match.group()) if match.end() - match.start() > 2 else match.group()
    return Token(match.start(), match.start() + len(word), word, word.casefold())


def token_at(text: str, start: int) -> Token | None:
    """The word that begins exactly there."""
    match = _WORD.match(text, start)
    return token(match) if match else None


def candidates(text: str, lexicon: Lexicon) -> Sequence[Token]:
    """All words, if any of them can be a name or a place; most turns have none."""
    seen = set(_WORD.findall(text))
    if not any(_is_candidate(word, lexicon) for word in seen):
        return ()
    return [token(match) for match in _WORD.finditer(text)]


def _is_candidate(word: str, lexicon: Lexicon) -> bool:
    if not word[0].isupper():
        return _POSSESSIVE.sub("", word) in lexicon.given
    key = word.casefold()
    return key not in lexicon.words or key in lexicon.word_names or key in lexicon.word_places


def is_known(key: str, lexicon: Lexicon) -> bool:
    """Whether it is an English word, also a contraction or compound, or no name for sure."""
    if key in lexicon.words or key in lexicon.not_names or len(key) > _LONGEST:
        return True
    if "-" in key:
        return all(part in lexicon.words for part in key.split("-"))
    return bool(_CONTRACTION.search(key))


def beside(text: str, before: Token, behind: Token) -> bool:
    """Whether only a space, or a comma and a space, is between two words."""
    return text[before.end : behind.start] in {" ", ", ", ". ", "-"}
