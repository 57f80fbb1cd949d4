"""The questions that can be asked, and how each is answered from a database."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from stream_app.analytics.questions import (
    associations,
    drift,
    drift_watch,
    expressed_perceived,
    fairness,
    frames,
    over_time,
    pairs,
    service_levels,
)
from stream_app.analytics.questions.attributes import NotEnabled
from stream_app.analytics.questions.frames import Frames
from stream_app.analytics.questions.over_time import Activity
from stream_app.analytics.questions.result import Analysis, Context
from stream_app.core.session.restrictions import NOTHING, Outputs
from stream_app.store.sessions.scope import ALL_SESSIONS, Scope
from stream_app.store.stream.repository import Store

Agreement = Callable[[Sequence[str]], list[str]]
"""Sentences about the latest agreement of people with these bundles."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its parameters; each question uses those that concern it.

    Attributes:
        since: sessions that began then or later.
        until: sessions that began before.
        measures: only these measures; empty: all.
        fewest_turns: minimum activity of a counsellor.
        fewest_days: minimum stay of a counsellor.
        calendar: curves by calendar week instead of months since joining.
        at: date of a change (service levels), or begin of the current period (drift).
        trained: the team that something happened to at that date (service levels); the others are
            compared with it.
        attributes: self-declared, by pseudonym; None: not configured.
        archive: the folder of archived months.
        restricted: outputs that are not read; archived months may still have them.
        acknowledged: changes that are the baseline (drift); ``answer`` reads them.
    """

    scope: Scope = ALL_SESSIONS
    since: datetime | None = None
    until: datetime | None = None
    measures: tuple[str, ...] = ()
    fewest_turns: int = 10
    fewest_days: int = over_time.FEWEST_DAYS
    calendar: bool = False
    at: datetime | None = None
    trained: str | None = None
    attributes: Mapping[str, str] | None = None
    archive: Path | None = None
    restricted: Outputs = NOTHING
    acknowledged: tuple[tuple[drift.Subject, datetime], ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the data it needs.

    Attributes:
        run: from frames to the analysis.
        measures: that can be chosen.
        turns: whether it reads turns, ``heads``: with all their heads.
    """

    run: Callable[[Frames, Context, Asked], Analysis]
    measures: tuple[str, ...] = ()
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


def _service_levels(found: Frames, context: Context, asked: Asked) -> Analysis:
    measures = asked.measures or service_levels.MEASURES
    return service_levels.analyse(
        found, context, at=asked.at, measures=measures, trained=asked.trained
    )


def _pairs(found: Frames, context: Context, asked: Asked) -> Analysis:
    if asked.attributes is None:
        raise NotEnabled(
            "pairs are off: RAPPORT_SELF_DECLARED_ATTRIBUTES names no file of self-declared "
            "attributes"
        )
    measures = asked.measures or tuple(pairs.MEASURES)
    return pairs.analyse(found, context, asked.attributes, measures=measures)


QUESTIONS: Final[Mapping[str, Question]] = {
    over_time.QUESTION: Question(_over_time, tuple(over_time.MEASURES)),
    associations.QUESTION: Question(
        lambda found, context, _: associations.analyse(found, context), turns=True
    ),
    pairs.QUESTION: Question(_pairs, tuple(pairs.MEASURES)),
    expressed_perceived.QUESTION: Question(
        lambda found, context, _: expressed_perceived.analyse(found, context),
        turns=True,
        heads=True,
    ),
    service_levels.QUESTION: Question(_service_levels, service_levels.MEASURES),
    drift.QUESTION: Question(
        lambda found, context, asked: drift.analyse(
            found, context, at=asked.at, known=dict(asked.acknowledged)
        ),
        turns=True,
        heads=True,
    ),
    fairness.QUESTION: Question(
        lambda found, context, asked: fairness.analyse(found, context, asked.attributes),
        turns=True,
        heads=True,
    ),
}


def answer(store: Store, name: str, asked: Asked, agreement: Agreement = lambda _: []) -> Analysis:
    """Read what the question needs and analyse it.

    Raises:
        NotEnabled: the question needs self-declared attributes.
        ArchiveError: archived sessions are meant, and the archive is not there.
    """
    question = QUESTIONS[name]
    if name == drift.QUESTION:
        asked = replace(asked, acknowledged=tuple(drift_watch.acknowledged(store).items()))
    found = frames.read(
        store,
        asked.scope,
        asked.since,
        asked.until,
        with_turns=question.turns,
        with_heads=question.heads,
        archive=asked.archive,
        restricted=asked.restricted,
    )
    known = sorted(set(found.sessions["bundle"]))
    context = Context(_day(asked.since), _day(asked.until), tuple(agreement(known)))
    return question.run(found, context, asked)


def _day(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d}"
