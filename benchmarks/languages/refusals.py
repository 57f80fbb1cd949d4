"""Turns that would be left unscored for their language, in sentences and in corpora."""

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from stream_app.core.rules.languages import covers
from stream_app.core.session.turn_languages import SpokenIn, spoken_in
from stream_app.inference.language_detector import TextLanguages

SENTENCES: Final = Path(__file__).with_name("sentences.tsv")
"""Short turns of chats, written for this project: a language's tag, a tabulator, the turn."""
SCORED: Final = ("en",)
_SAID: Final = frozenset({"better", "client", "client_1", "client_2", "text", "worse"})
_WORDS: Final = 5


def sentences() -> list[tuple[str, str]]:
    """The sentences with their languages."""
    rows = (line.partition("\t") for line in SENTENCES.read_text("utf-8").splitlines())
    return [(language, text) for language, _, text in rows]


def language_of(text: str, before: dict[str, int] | None = None) -> SpokenIn:
    """The language that an untagged turn is taken to be in."""
    shares = TextLanguages().shares(text)
    return spoken_in(shares, len(text.split()), None, before or {}, SCORED)


def refused(text: str) -> bool:
    """Whether an untagged first turn would have no score."""
    return not covers(SCORED, language_of(text).tag)


def turns_of(file: Path) -> Iterator[str]:
    """Yield the turns of a corpus that has one conversation a line."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield from _said(json.loads(line))


def long_turns(file: Path) -> list[str]:
    """Return the turns of a corpus that have five words or more."""
    return [text for text in turns_of(file) if len(text.split()) >= _WORDS]


def false_refusals(texts: Sequence[str]) -> list[str]:
    """Return the English texts that would get no score."""
    return [text for text in texts if refused(text)]


def _said(found: Any) -> Iterator[str]:
    if isinstance(found, dict):
        for name, value in found.items():
            if isinstance(value, str):
                yield from [value] if name in _SAID else []
            elif name == "turns":
                yield from (turn[1] for turn in value)
            else:
                yield from _said(value)
    elif isinstance(found, list):
        for each in found:
            yield from _said(each)
