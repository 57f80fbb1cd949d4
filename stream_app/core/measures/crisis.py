"""Crisis language in a client turn: a safety net of words, never a risk assessment.

A turn that contains a phrase of the list counts, whatever the bundle's crisis probe says of it.
docs/crisis.md has what both find, and what they miss.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from stream_app.contracts.scores import Span
from stream_app.core.measures.crisis_phrases import PARTS, PHRASES
from stream_app.plain_text.copies import spoken

CRISIS: Final = "crisis_language"
"""Name of the output of client turns."""
LISTED: Final = 1.0
"""The value of a turn in which the list finds a phrase."""
THRESHOLD: Final = 0.5
"""Smallest value that counts a turn; a crisis probe's bias is chosen for it."""
LETTERS: Final = 2
NEGATION_REACH: Final = 80
"""Characters before a phrase in which a negation counts."""

_GAP: Final = r"(?:\w{1,20} ){0,2}"
_NEGATED: Final = re.compile(
    r"\b(?:never|not|wouldnt|no|isnt|wasnt|wont|didnt|havent|hasnt|dont) (?:\w{1,20} ){0,3}$"
)
_NOT_NEGATED: Final = re.compile(
    r"\b(?:not (?:only|just|joking|kidding|sure|stop)|dont (?:know|care|think|see|tell)"
    r"|no (?:idea|joke|doubt|longer)) (?:\w{1,20} ){0,3}$"
)
_PAST: Final = re.compile(
    r"\b(?:used to|(?:years|decades) (?:ago|clean)|when i was (?:\d|a |young|little|\w{2,9}teen)"
    r"|in (?:19|20)\d\d|as a (?:teenager|teen|child))\b"
)
_PRESENT: Final = re.compile(r"\b(?:again|still|now|tonight|lately)\b")
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)*|[.!?;\n]")
_PAUSES: Final = frozenset(".\n")
"""Marks after which a sentence goes on, if it goes on in small letters."""


def _openings(pattern: str) -> list[str]:
    """The pattern, one for each alternative of the group that it begins with.

    >>> _openings("(?:cut|(?:burn|hit) my) arm")
    ['cut arm', 'burn my arm', 'hit my arm']
    """
    if not pattern.startswith("(?:"):
        return [pattern]
    depth, cuts = 0, [2]
    for place, letter in enumerate(pattern):
        depth += (letter == "(") - (letter == ")")
        if depth == 1 and letter == "|":
            cuts.append(place)
        if depth == 0:
            rest = pattern[place + 1 :]
            parts = [pattern[a + 1 : b] for a, b in pairwise([*cuts, place])]
            return [found for part in parts for found in _openings(part + rest)]
    raise ValueError(pattern)


def _by_first_letters() -> dict[str, re.Pattern[str]]:
    """The phrases by their first letters: most words begin none, which makes the search fast."""
    by_letters: dict[str, list[str]] = {}
    for phrases in PHRASES.values():
        for phrase in phrases:
            for name, part in PARTS.items():
                phrase = phrase.replace(f"{{{name}}}", part)  # noqa: PLW2901
            for pattern in _openings(phrase.replace(" _", f" {_GAP}")):
                by_letters.setdefault(pattern[:LETTERS], []).append(pattern)
    return {
        letters: re.compile(rf"(?:{'|'.join(patterns)})(?![^\W_])")
        for letters, patterns in by_letters.items()
    }


_PHRASES: Final = _by_first_letters()


class _Words(NamedTuple):
    """Words, joined by spaces, with their places in the text."""

    words: str
    places: list[Span]


def find_phrases(text: str) -> list[Span]:
    r"""Character spans of the list's phrases, ascending and without overlaps.

    Negated phrases do not count, nor those of a sentence about the past, nor what is only quoted.

    >>> text = "It's late. I keep thinking about killing myself."
    >>> [text[start:end] for start, end in find_phrases(text)]
    ['killing myself']
    >>> find_phrases("I would never hurt myself."), find_phrases("This homework is killing me.")
    ([], [])
    >>> find_phrases("> I want to die\n\nI wrote that in May."), find_phrases("i want to...\ndie")
    ([], [(2, 16)])
    """
    copy = spoken(text)
    found: list[Span] = []
    for parts in _sentences(copy.text):
        for part in parts:
            found += (part.places[first][:1] + part.places[last][1:] for first, last in _in(part))
        if len(parts) > 1:
            found += _across(parts)
    return copy.spans(_joined(sorted(found)))


def _in(sentence: _Words) -> Iterator[tuple[int, int]]:
    """The first and the last word of each phrase in a sentence, as their numbers."""
    words, at = sentence.words, 0
    for first, word in enumerate(words.split(" ")):
        phrases = _PHRASES.get(words[at : at + LETTERS])
        match = phrases.match(words, at) if phrases is not None else None
        if match is not None and not _is_negated(words[:at]) and not _is_past(words):
            yield first, first + match.group().count(" ")
        at += len(word) + 1


def _across(parts: Sequence[_Words]) -> Iterator[Span]:
    """Phrases that go over a pause between parts of a sentence."""
    places = [place for part in parts for place in part.places]
    begins, number = set(), 0
    for part in parts:
        begins.add(number)
        number += len(part.places)
    for first, last in _in(_Words(" ".join(part.words for part in parts), places)):
        if any(word in begins for word in range(first + 1, last + 1)):
            yield places[first][0], places[last][1]


def _is_past(words: str) -> bool:
    return _PAST.search(words) is not None and _PRESENT.search(words) is None


def _is_negated(before: str) -> bool:
    near = before[-NEGATION_REACH:]
    return _NEGATED.search(near) is not None and _NOT_NEGATED.search(near) is None


def _sentences(text: str) -> list[list[_Words]]:
    """Sentences, each in the parts between its pauses.

    A full stop, dots or a line break before a small letter may be a pause, and so may a single
    line break before a capital letter.
    """
    sentences: list[list[tuple[list[str], list[Span]]]] = []
    marks = "!"
    for match in _WORD.finditer(text):
        word = match.group()
        if not word[0].isalnum():
            marks += word
            continue
        if marks:
            goes_on = marks == "\n" or (word[0].islower() and _PAUSES.issuperset(marks))
            part: tuple[list[str], list[Span]] = ([], [])
            if goes_on:
                sentences[-1].append(part)
            else:
                sentences.append([part])
            marks = ""
        words, places = sentences[-1][-1]
        words.append(_letters(word))
        places.append(match.span())
    return [[_Words(" ".join(words), places) for words, places in parts] for parts in sentences]


def _letters(word: str) -> str:
    """The word in small letters without accents and apostrophes."""
    word = word.replace("'", "").lower()
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


def _joined(spans: list[Span]) -> list[Span]:
    found: list[Span] = []
    for start, end in spans:
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
