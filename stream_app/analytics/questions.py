"""The questions that can be asked, and how each is answered from a database."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from stream_app.analytics import frames, over_time
from stream_app.analytics.frames import Frames
from stream_app.analytics.over_time import Activity
from stream_app.analytics.result import Analysis, Context
from stream_app.store.reading.scope import EVERYTHING, Scope
from stream_app.store.repository import Store

Agreement = Callable[[Sequence[str]], list[str]]
"""Sentences about the latest agreement of people with these bundles."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked; each question uses the parts that concern it.

    Attributes:
        since: sessions that began then or later.
        until: sessions that began before.
        measures: only these measures; empty: all.
        fewest_turns: minimum activity of a counsellor.
        fewest_days: minimum stay of a counsellor.
        calendar: curves by calendar week instead of months since joining.
    """

    scope: Scope = EVERYTHING
    since: datetime | None = None
    until: datetime | None = None
    measures: tuple[str, ...] = ()
    fewest_turns: int = 10
    fewest_days: int = 365
    calendar: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """``turns``, ``heads``: whether it reads turns, and whether with all their heads."""

    run: Callable[[Frames, Context, Asked], Analysis]
    turns: bool = False
    heads: bool = False


def _over_time(found: Frames, context: Context, asked: Asked) -> Analysis:
    return over_time.analyse(
        found,
        context,
        measures=asked.measures or tuple(over_time.MEASURES),
        activity=Activity(asked.fewest_turns, asked.fewest_days),
        calendar=asked.calendar,
    )


QUESTIONS: Final[Mapping[str, Question]] = {
    over_time.QUESTION: Question(_over_time),
}

MEASURES: Final[Mapping[str, tuple[str, ...]]] = {
    over_time.QUESTION: tuple(over_time.MEASURES),
}
"""Measures that can be chosen, by question."""


def answer(store: Store, name: str, asked: Asked, agreement: Agreement = lambda _: []) -> Analysis:
    """Read what the question needs and analyse it."""
    question = QUESTIONS[name]
    found = frames.read(
        store,
        asked.scope,
        asked.since,
        asked.until,
        with_turns=question.turns,
        with_heads=question.heads,
    )
    known = sorted(set(found.sessions["bundle"]))
    context = Context(_day(asked.since), _day(asked.until), tuple(agreement(known)))
    return question.run(found, context, asked)


def _day(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d}"
