"""Towns, and named schools, hospitals and universities. Countries stay: many people share them."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from stream_app.redaction.lexicon import FEELINGS, Lexicon
from stream_app.redaction.near import matches, near_words
from stream_app.redaction.spans import Kind, Span
from stream_app.redaction.tokens import Token, Tokens, is_known
from stream_app.redaction.vocabulary import vocabulary

_CAPITAL: Final = r"[^\W\d_a-z][\w’']{1,30}\.?"
_INSTITUTION = re.compile(
    r"(?<![\w’'])(?:(?:Hospital|Infirmary|Clinic|School|College|University|Academy|Surgery|Centre"
    r"|Center|Church|Prison|Hospice|Sixth Form)(?!\w) ?)+"
)
_INSTITUTIONS: Final = (
    *("hospital", "infirmary", "clinic", "school", "college", "university", "academy", "surgery"),
    *("centre", "center", "church", "prison", "hospice", "sixth form", "bank"),
)
_LIVING_CUES: Final = (
    *("live", "living", "stay", "grew up", "born", "raised", "based", "stuck", "mov", "work"),
    *("house ", "flat ", "home ", "job ", " from ", "nobody in", "people "),
)
_NAME_PART = re.compile(r"[^\W_][\w’'.]*")
_LONGEST_NAME: Final = 60
"""Characters before "School" that may be its name."""
_JOINING: Final = frozenset({"of", "the", "and", "de"})
_OF_PLACE = re.compile(
    r"\b(?:University|College|School|Church|Hospital|Bank) of (?:the )?"
    rf"{_CAPITAL}(?: {_CAPITAL}){{0,2}}"
)
_NO_NAMES: Final = vocabulary("places", "no_names")
_MOST_WORDS: Final = 3
"""Longest town name, in words."""
_IN: Final = vocabulary("places", "in")
_LIVING = re.compile(
    r"\b(?:(?:live|lives|lived|living|stay|staying|stayed|grew up|born|raised|based|stuck|moved"
    r"|moving|move|work|works|worked|working|house|flat|home|job) (?:in|to|near|outside|from|at)"
    r"|(?:i['’]?m|i am|come|comes|came|is|was) from|nobody in|people (?:to do )?in) "
    rf"(?P<place>{_CAPITAL}"
    rf"(?:[ -](?:(?:on|upon|le|la|under|in|by|of|de|the)[ -])?{_CAPITAL}){{0,3}})"
)
_NOT_LIVED_IN: Final = vocabulary("places", "not_lived_in")


def places(text: str, tokens: Tokens, words: Lexicon) -> Iterator[Span]:
    """Towns of the list, places that somebody says they live in, and institutions."""
    yield from _towns(tokens, words)
    for match in matches(_LIVING, text, near_words(text, _LIVING_CUES, 10, 160)):
        if _is_place(match["place"], words):
            start, end = match.span("place")
            yield Span(start, end - match["place"].endswith("."), Kind.PLACE)
    yield from _institutions(text)


def _is_place(name: str, words: Lexicon) -> bool:
    parts = [part.casefold() for part in re.findall(r"[^\W\d_]+", name)]
    if not parts or any(
        part in words.not_names or part in _NOT_LIVED_IN or part in FEELINGS for part in parts
    ):
        return False
    return len(parts) > 1 or not (is_known(parts[0], words) or name.isupper())


def _institutions(text: str) -> Iterator[Span]:
    for match in matches(_INSTITUTION, text, near_words(text, _INSTITUTIONS, 1, 60)):
        start = _name_before(text, match.start())
        if start is not None:
            yield Span(start, match.end() - match.group().endswith(" "), Kind.PLACE)
    for match in matches(_OF_PLACE, text, near_words(text, _INSTITUTIONS, 1, 120)):
        yield Span(*match.span(), Kind.PLACE)


def _name_before(text: str, end: int) -> int | None:
    """Where the capitalised words before "School" begin, if one of them is a name."""
    first = max(0, end - _LONGEST_NAME)
    start, reached = None, end
    for part in reversed(list(_NAME_PART.finditer(text, first, end))):
        word = part.group()
        joined = text[part.end() : reached] in {" ", "-"}
        if not joined or not (word[0].isupper() or word in _JOINING):
            break
        if word[0].isupper() and word.casefold() not in _NO_NAMES:
            start = part.start()
        reached = part.start()
    return start


def _towns(tokens: Tokens, words: Lexicon) -> Iterator[Span]:
    for at, found in tokens.candidates():
        if found.capital:
            end = _town_end(tokens.text, tokens.from_(at, _MOST_WORDS), words)
            if end:
                yield Span(found.start, end, Kind.PLACE)
            elif found.key in words.word_places:
                before = tokens.before(at)
                if before and before.word in _IN:
                    yield Span(found.start, found.end, Kind.PLACE)


def _town_end(text: str, tokens: Iterable[Token], words: Lexicon) -> int | None:
    """Where the longest town of the list ends that begins with the first of these words."""
    name, last, end = "", None, None
    for found in tokens:
        between = text[last.end : found.start] if last else ""
        if between not in {"", " ", "-"} or not found.capital:
            break
        name, last = f"{name}{between}{found.key}", found
        if len(name) > 2 and name in words.places:
            end = found.end
    return end
