"""Names as forms and letters write them: after titles in any case, and with initials."""

import re
from collections.abc import Iterator
from typing import Final

from stream_app.redaction.lexicon import Lexicon
from stream_app.redaction.near import matches, near_words
from stream_app.redaction.spans import Kind, Span
from stream_app.redaction.tokens import WORD, Token, is_known, token_at
from stream_app.redaction.vocabulary import vocabulary

_TITLE_CUES: Final = ("mr", "ms", "mx", "dr", "miss", "prof", "doctor")
_TITLED = re.compile(
    rf"(?<![\w.'’-])(?P<title>mrs?|ms|mx|dr|miss|prof|professor|doctor)(?P<dot>\.?) "
    rf"(?P<initials>(?:[A-Za-z]\. ?){{0,3}})(?P<name>{WORD})",
    re.IGNORECASE,
)
_INITIALS = re.compile(rf"(?<![\w.])(?P<initials>(?:[A-Z]\. ?){{2,4}})(?P<name>{WORD})")
_INTRODUCED = re.compile(
    r"\b(?:name(?:['’]?s| is| was)|call me|called|known as|i(?:['’]?m| am)|this is|speaking to)"
    rf"[ ,:]{{1,2}}(?P<initials>(?:[A-Z](?:\. ?| )){{1,4}})(?P<name>{WORD})",
    re.IGNORECASE,
)
_INTRODUCED_CUES: Final = (
    "name",
    "call",
    "known as",
    "i'm",
    "i’m",
    "im ",
    "i am",
    "this is",
    "to ",
)
_ACRONYMS: Final = vocabulary("formal", "acronyms")
_NO_NAMES: Final = vocabulary("formal", "no_names")
_BEFORE_MISS: Final = vocabulary("formal", "before_miss")
_LAST_WORD: Final = re.compile(r"(\w+)[^\w.!?]*\Z")


def formal(text: str, words: Lexicon) -> Iterator[Span]:
    """Names after titles, and surnames with their initials."""
    for match in matches(_TITLED, text, near_words(text, _TITLE_CUES, 1, 60, beginnings=True)):
        found = token_at(text, match.start("name"))
        if found and _is_titled(text, match, found, words):
            yield Span(match.start("initials"), _end(text, found, words), Kind.MENTIONED_NAME)
    for match in _INITIALS.finditer(text):
        yield from _with_initials(text, match, Kind.MENTIONED_NAME, words)
    for match in matches(_INTRODUCED, text, near_words(text, _INTRODUCED_CUES, 8, 60)):
        yield from _with_initials(text, match, Kind.INTRODUCED_NAME, words)


def _with_initials(text: str, match: re.Match[str], kind: Kind, words: Lexicon) -> Iterator[Span]:
    initials, found = match["initials"], token_at(text, match.start("name"))
    letters = "".join(filter(str.isalpha, initials)).lower()
    dotted = "." in initials
    if not found or letters in _ACRONYMS or not (dotted or initials.isupper()):
        return
    if not dotted and letters in {"a", "i"}:
        return  # words
    small = dotted and kind is Kind.INTRODUCED_NAME and "name" in match.group().lower()
    if _is_surname(found, words, capital=not small):
        yield Span(match.start("initials"), _end(text, found, words), kind)


def _is_titled(text: str, match: re.Match[str], found: Token, words: Lexicon) -> bool:
    if _is_no_title(text, match, found.word):
        return False
    title = match["title"].lower()
    if found.capital or title in {"mr", "mrs", "ms", "mx"}:
        return _is_surname(found, words, capital=found.capital)
    if found.key in words.given:
        return found.key not in _NO_NAMES
    short = title in {"dr", "prof"} and len(found.key) > 3
    return short and _is_surname(found, words, capital=False) and not is_known(found.key, words)


def _is_no_title(text: str, match: re.Match[str], name: str) -> bool:
    """Whether the word before a name is a verb or an abbreviation, or the name is one."""
    title = match["title"]
    if name.isupper() and len(name) < 4 and not title.isupper():
        return True
    if title == "MS":  # a state, an illness, a maker of software
        return not name.isupper() or len(name) < 4
    if title.lower() != "miss" or match["dot"]:
        return False
    before = _LAST_WORD.search(text[max(0, match.start() - 30) : match.start()])
    return before is not None and before[1].lower() in _BEFORE_MISS


def _is_surname(found: Token, words: Lexicon, *, capital: bool) -> bool:
    """Whether the word can be a surname: one of the list, a given name or an unknown word."""
    if len(found.key) < 3 or found.key in _NO_NAMES or (capital and not found.capital):
        return False
    return _is_listed(found, words) or not is_known(found.key, words)


def _is_listed(found: Token, words: Lexicon) -> bool:
    key = found.key
    return key in words.given or key in words.word_surnames


def _end(text: str, found: Token, words: Lexicon) -> int:
    """Where the name ends: with it, or with a further name written like it."""
    if text[found.end : found.end + 1] not in {" ", "-"}:
        return found.end
    behind = token_at(text, found.end + 1)
    same = (
        behind and behind.capital == found.capital and behind.word.isupper() == found.word.isupper()
    )
    return (
        behind.end if behind and same and _is_surname(behind, words, capital=False) else found.end
    )
