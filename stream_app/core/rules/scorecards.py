"""Scorecards of reviews: weighted criteria, which measures of a session can fill in advance.

A criterion that is ``asked`` is also put to a language model, whose answer is shown as a proposal
(``core.proposals``).

Format: ``docs/reviews.md``.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct, structs
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from stream_app.core.measures.catalogue import Use, names, now
from stream_app.errors import RapportError

VERSION: Final = 1
MEASURES: Final = names(Use.SCORECARDS)
"""Measures of a session that can fill a criterion."""
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
Name = Annotated[str, Meta(min_length=1, max_length=50)]
Words = Annotated[str, Meta(min_length=1, max_length=300)]


class ScorecardFileError(RapportError):
    """The file of scorecards is not valid; one line per error."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = list(faults)


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """Where an answer comes from: a measure, and the limits between the steps of the scale.

    Rising limits: a larger value gives a higher step. Falling limits: a smaller value does.
    """

    measure: str
    steps: Annotated[tuple[float, ...], Meta(min_length=1, max_length=9)]

    def __post_init__(self) -> None:
        structs.force_setattr(self, "measure", now(self.measure))

    def step(self, value: float) -> int:
        """The step of the scale that a value of the measure reaches.

        >>> Source("answered_share", (0.4, 0.7)).step(0.5)
        1
        >>> Source("talk_share", (0.7, 0.5)).step(0.45)
        2
        """
        falling = len(self.steps) > 1 and self.steps[0] > self.steps[-1]
        return sum(value <= limit if falling else value >= limit for limit in self.steps)


class Criterion(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A question with an ordinal scale, whose lowest step comes first."""

    name: Name
    question: Words
    scale: Annotated[tuple[Words, ...], Meta(min_length=2, max_length=10)]
    weight: Annotated[float, Meta(gt=0, le=100)] = 1.0
    source: Source | None = msgspec.field(name="from", default=None)
    asked: bool = False

    def fill(self, measures: Mapping[str, float]) -> int | None:
        """The answer that the session's measures give; None without the measure."""
        if self.source is None or self.source.measure not in measures:
            return None
        return self.source.step(measures[self.source.measure])


class Scorecard(Struct, frozen=True, forbid_unknown_fields=True):
    """Criteria that a reviewer answers."""

    name: Name
    title: Words
    criteria: Annotated[tuple[Criterion, ...], Meta(min_length=1, max_length=50)]

    def fill(self, measures: Mapping[str, float]) -> dict[str, int]:
        """The answers that the session's measures give, by criterion."""
        found = {each.name: each.fill(measures) for each in self.criteria}
        return {name: value for name, value in found.items() if value is not None}

    def total(self, answers: Mapping[str, int]) -> float | None:
        """The weighted mean of the answers, from 0 (lowest steps) to 1; None without an answer.

        >>> scale = ("no", "partly", "yes")
        >>> criteria = Criterion("a", "A?", scale, weight=3.0), Criterion("b", "B?", scale)
        >>> card = Scorecard("c", "C", criteria)
        >>> card.total({"a": 2, "b": 0})
        0.75
        """
        given = [each for each in self.criteria if each.name in answers]
        weights = sum(each.weight for each in given)
        shares = (each.weight * answers[each.name] / (len(each.scale) - 1) for each in given)
        return sum(shares) / weights if weights else None

    def missing(self, answers: Mapping[str, int]) -> list[str]:
        """Criteria without an answer."""
        return [each.name for each in self.criteria if each.name not in answers]


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    scorecards: Annotated[tuple[Scorecard, ...], Meta(min_length=1, max_length=50)]


Scorecards = Mapping[str, Scorecard]
"""Scorecards by name, in the order of the file; the first one is the default."""


def asked(cards: Scorecards) -> list[Criterion]:
    """The questions of all scorecards that a language model is asked, each once."""
    found = {
        (each.question, each.scale): each
        for card in cards.values()
        for each in card.criteria
        if each.asked
    }
    return list(found.values())


def parse(raw: bytes, name: str) -> Scorecards:
    """The scorecards in a file's bytes; ``name`` is how messages call the file.

    Raises:
        ScorecardFileError: with all errors found, or the first one that makes it unreadable.
    """
    try:
        loaded = YAML(typ="safe", pure=True).load(raw.decode("utf-8"))
        file = msgspec.convert(loaded, _File)
    except UnicodeDecodeError:
        raise ScorecardFileError([f"{name}: not valid UTF-8"]) from None
    except msgspec.ValidationError as problem:
        raise ScorecardFileError([f"{name}: {problem}"]) from None
    except (YAMLError, ValueError, RecursionError) as problem:
        what = " ".join(str(problem).split()) or type(problem).__name__
        raise ScorecardFileError([f"{name}: not YAML: {what}"]) from None
    faults = [f"{name}: {fault}" for fault in _faults(file)]
    if faults:
        raise ScorecardFileError(faults)
    return {card.name: card for card in file.scorecards}


def pack(card: Scorecard) -> dict[str, Any]:
    """A scorecard as JSON, stored with every review: the file may change."""
    packed: dict[str, Any] = msgspec.to_builtins(card)
    return packed


def unpack(stored: Any) -> Scorecard:
    """The inverse of ``pack``."""
    return msgspec.convert(stored, Scorecard)


def _faults(file: _File) -> Iterator[str]:
    if file.version != VERSION:
        yield f"`version: {VERSION}` is required"
    yield from _names("scorecards", [card.name for card in file.scorecards])
    for card in file.scorecards:
        yield from _names(card.name, [each.name for each in card.criteria])
        for each in card.criteria:
            where = f"{card.name}, {each.name}"
            if len(set(each.scale)) < len(each.scale):
                yield f"{where}: the scale names a step twice"
            if each.source is not None:
                yield from (f"{where}: {fault}" for fault in _source_faults(each, each.source))
            if each.asked and each.source is not None:
                yield f"{where}: a question is filled `from` a measure or `asked`, not both"


def _names(where: str, names: Sequence[str]) -> Iterator[str]:
    for name, count in Counter(names).items():
        if count > 1:
            yield f"{where}: the name `{name}` is used {count} times"
        if not _NAME.fullmatch(name):
            yield (f"{where}: `{name}`: a name consists of lower-case letters, digits and hyphens")


def _source_faults(criterion: Criterion, source: Source) -> Iterator[str]:
    if source.measure not in MEASURES:
        yield f"unknown measure `{source.measure}`; known are {', '.join(MEASURES)}"
    if len(source.steps) != len(criterion.scale) - 1:
        yield (
            f"a scale of {len(criterion.scale)} steps needs {len(criterion.scale) - 1} limits in "
            f"`from.steps`, not {len(source.steps)}"
        )
    neighbours = list(pairwise(source.steps))
    if not (all(a < b for a, b in neighbours) or all(a > b for a, b in neighbours)):
        yield "`from.steps` must rise or fall"
