"""Answers of the endpoint, read strictly: what is not valid is never turned into a label."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec import Struct

from research.second_coder.codebook import LETTERS, Variable

Span = tuple[int, int]


class InvalidAnswer(ValueError):
    """An answer that is not valid; the message quotes neither answer nor item."""


class Json(Struct, forbid_unknown_fields=True):
    """An answer as a JSON object."""

    label: str
    evidence: list[str] | None = None


@dataclass(frozen=True)
class Answer:
    """A label.

    `evidence`: character spans (start, end) of the coded utterance. `probabilities`: of the labels
    among the endpoint's most probable tokens, not normalised.
    """

    label: str
    evidence: tuple[Span, ...] = ()
    probabilities: Mapping[str, float] = field(default_factory=dict)


def parse(content: str, variable: Variable, text: str) -> Answer:
    """Read an answer in JSON to an utterance with this text.

    Raises:
        InvalidAnswer: it is no such object, has another label, or quotes words that are not there.
    """
    try:
        found = msgspec.json.decode(content, type=Json)
    except msgspec.ValidationError:
        raise InvalidAnswer("it is not the JSON object that was asked for") from None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise InvalidAnswer("it is not JSON") from None
    if found.label not in variable.values:
        raise InvalidAnswer("its label is not in the codebook")
    if not variable.evidence:
        if found.evidence is not None:
            raise InvalidAnswer("no evidence was asked for")
        return Answer(found.label)
    if found.evidence is None:
        raise InvalidAnswer("the evidence is missing")
    if found.evidence and found.label == variable.values[0]:
        raise InvalidAnswer(f"the label {found.label} has no evidence")
    return Answer(found.label, tuple(_span(phrase, text) for phrase in found.evidence))


def _span(phrase: str, text: str) -> Span:
    start = text.find(phrase) if phrase.strip() else -1
    if start < 0:
        raise InvalidAnswer("its evidence is not copied exactly from the utterance")
    return start, start + len(phrase)


def rank(tokens: Sequence[tuple[str, float]], variable: Variable) -> Answer:
    """The label whose letter has the largest probability as the answer's first token.

    `tokens` are the endpoint's most probable ones with natural log-probabilities; a letter's tokens
    with and without white space are added up.

    Raises:
        InvalidAnswer: no letter is among them, or two are equally probable.
    """
    shares: dict[str, float] = {}
    for token, log_probability in tokens:
        letter = token.strip()
        place = LETTERS.find(letter) if len(letter) == 1 else -1
        if 0 <= place < len(variable.labels) and not math.isnan(log_probability):
            name = variable.values[place]
            shares[name] = shares.get(name, 0.0) + math.exp(min(0.0, log_probability))
    if not shares or max(shares.values()) == 0.0:
        raise InvalidAnswer("no letter of a label is among its most probable tokens")
    first, *others = sorted(shares, key=shares.__getitem__, reverse=True)
    if others and shares[others[0]] == shares[first]:
        raise InvalidAnswer("two labels are equally probable")
    return Answer(first, probabilities=shares)
