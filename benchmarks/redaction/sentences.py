"""The evaluation set: sentences written for this project, with the details in them marked.

A detail is written ``[[kind:detail]]``. ``held_out`` sentences were written before the rules and
are not looked at when rules are changed; ``develop`` sentences are, and so are those of ``chat``:
small letters, titles, initials, decomposed accents, Indian numbers, and words for who people are.
"""

import re
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from stream_app.redaction.spans import Kind, Span

FILE: Final = Path(__file__).with_name("sentences.jsonl")
SPLITS: Final = ("develop", "held_out", "chat")

_MARK = re.compile(r"\[\[(\w+):(.*?)\]\]")


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    split: str
    text: str
    country: str | None = None
    negative: str | None = None


class Sentence(NamedTuple):
    """``country``: whose formats it has. ``negative``: what it could be mistaken for."""

    text: str
    spans: tuple[Span, ...]
    split: str
    country: str | None
    negative: str | None


def read(file: Path = FILE) -> list[Sentence]:
    """All sentences."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [_sentence(msgspec.json.decode(line, type=_Row)) for line in lines]


def _sentence(row: _Row) -> Sentence:
    text, spans = "", []
    done = 0
    for mark in _MARK.finditer(row.text):
        text += row.text[done : mark.start()]
        spans.append(Span(len(text), len(text) + len(mark[2]), Kind(mark[1])))
        text += mark[2]
        done = mark.end()
    return Sentence(text + row.text[done:], tuple(spans), row.split, row.country, row.negative)
