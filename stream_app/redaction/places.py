"""Towns, and named schools, hospitals and universities. Countries stay: many people share them."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from stream_app.redaction.lexicon import FEELINGS, Lexicon, lexicon
from stream_app.redaction.spans import Kind, Span
from stream_app.redaction.tokens import Token, beside, candidates, is_known

_CAPITAL: Final = r"[^\W\d_a-z][\w’']{1,30}\.?"
_INSTITUTION = re.compile(
    rf"(?<![\w’'])(?P<name>{_CAPITAL}(?:[ -](?:(?:of|the|and|de) )?{_CAPITAL}){{0,4}}?)[ ]"
    r"(?:(?:General|Royal|Memorial|Children['’]s|High|Middle|Primary|Elementary|Secondary|Grammar"
    r"|Community|Medical|State|Comprehensive) ){0,2}"
    r"(?:Hospital|Infirmary|Clinic|School|College|University|Academy|Surgery|Centre|Center|Church"
    r"|Prison|Hospice|Sixth Form)\b"
)
_OF_PLACE = re.compile(
    rf"\b(?:University|College|School|Church|Hospital|Bank) of (?:the )?{_CAPITAL}(?: {_CAPITAL}){{0,2}}"
)
_NO_NAMES: Final = frozenset(
    "a the my our your his her their this that high middle primary elementary secondary grammar"
    " medical community state mental sunday business law graduate art boarding summer local new old"
    " public private university nursing medicine i in at to from on community health general call"
    " after before when and but so because".split()
)
_IN: Final = frozenset("in from near to at outside around through leave left leaving of".split())
_LIVING = re.compile(
    r"\b(?:(?:live|lives|lived|living|stay|staying|stayed|grew up|born|raised|based|stuck|moved|moving"
    r"|move|work|works|worked|working|house|flat|home|job) (?:in|to|near|outside|from|at)"
    r"|(?:i['’]?m|i am|come|comes|came|is|was) from|nobody in|people (?:to do )?in) "
    rf"(?P<place>{_CAPITAL}(?:[ -](?:(?:on|upon|le|la|under|in|by|of|de|the)[ -])?{_CAPITAL}){{0,3}})"
)
_NOT_LIVED_IN: Final = frozenset(
    "fear hell pain denial misery poverty silence darkness shame guilt horror terror regret sin"
    " constant year day night every my the our this".split()
)


def places(text: str) -> Iterator[Span]:
    """Towns of the list, places that somebody says they live in, and institutions."""
    words = lexicon()
    yield from _towns(text, candidates(text, words), words)
    for match in _LIVING.finditer(text):
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
    for match in _INSTITUTION.finditer(text):
        parts = re.findall(r"[^\W\d_][\w’']*", match["name"])
        named = next(
            (at for at, part in enumerate(parts) if part.casefold() not in _NO_NAMES), None
        )
        if named is not None:
            yield Span(text.index(parts[named], match.start()), match.end(), Kind.PLACE)
    for match in _OF_PLACE.finditer(text):
        yield Span(*match.span(), Kind.PLACE)


def _towns(text: str, tokens: Sequence[Token], words: Lexicon) -> Iterator[Span]:
    for at, found in enumerate(tokens):
        if not found.capital:
            continue
        name, last = found.key, at
        longest = (found.end, found.key in words.places and len(found.key) > 2) 
        while last + 1 < len(tokens) and last - at < 2 and tokens[last + 1].capital:
            last += 1
            if text[tokens[last - 1].end : tokens[last].start] not in {" ", "-"}:
                break
            name += text[tokens[last - 1].end] + tokens[last].key
            if name in words.places:
                longest = (tokens[last].end, True)
        if longest[1]:
            yield Span(found.start, longest[0], Kind.PLACE)
        elif found.key in words.word_places and at and tokens[at - 1].word in _IN:
            if beside(text, tokens[at - 1], found):
                yield Span(found.start, found.end, Kind.PLACE)
