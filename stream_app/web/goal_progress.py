"""Coaching goals: who may set one, and the measure before and since.

The unit is the session, and means are by model, as on the counsellor's page of development. A
difference does not show that the coaching caused it.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from statistics import fmean
from typing import Annotated, Final

from pydantic import Field

from stream_app.analytics.rollup_source import SCALE
from stream_app.store import audit, coaching_goals
from stream_app.store.audit import AuditAction
from stream_app.store.coaching_goals import Goal
from stream_app.store.people import Person
from stream_app.store.queries import counsellors, development
from stream_app.store.queries.development import MeasuredSession
from stream_app.store.queries.scope import Scope
from stream_app.store.roles import PersonRole
from stream_app.store.scored_turns import InvalidJudgement, NotFound
from stream_app.store.tables import ROLLED_UP
from stream_app.web.services import Services
from stream_app.web.trends import MIN_SESSIONS, interval

FEWEST_DAYS: Final = 28
"""Sessions of at least this many days before a goal are compared with those since."""


@dataclass(frozen=True, slots=True)
class MeanOf:
    """A mean over sessions with its 95 % interval; without them if ``n`` is too small."""

    bundle: Annotated[str, Field(description="The model that scored; compare within one")]
    n: Annotated[int, Field(description="Sessions")]
    mean: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Progress:
    """A goal with the means of its measure; ``since`` ends with the goal."""

    goal: Goal
    compared_from: Annotated[date, Field(description="First day of the time before the goal")]
    before: list[MeanOf]
    since: list[MeanOf]


@dataclass(frozen=True, slots=True)
class Sessions:
    """The counsellor's sessions before a goal and since, as far as the reader may see them."""

    compared_from: date
    starts_on: date
    before: list[MeasuredSession]
    since: list[MeasuredSession]


def add(
    services: Services,
    person: Person,
    counsellor: str,
    measure: str,
    text: str,
    starts_on: date,
    ends_on: date,
) -> Goal:
    """Set a goal for a counsellor whose sessions the supervisor reads; audited.

    Raises:
        NotFound: there is no such counsellor.
        InvalidJudgement: there is no such measure, or the goal ends before it starts.
    """
    if counsellors.one(services.store, person.scope, counsellor) is None:
        raise NotFound("no such counsellor")
    if measure not in ROLLED_UP:
        raise InvalidJudgement(f"the measures are {', '.join(ROLLED_UP)}")
    if ends_on <= starts_on:
        raise InvalidJudgement("a goal ends after it starts")
    record_read(services, person, counsellor)
    return coaching_goals.add(services.store, person, counsellor, measure, text, starts_on, ends_on)


def record_read(services: Services, person: Person, counsellor: str) -> None:
    """Record that somebody reads or sets goals of a counsellor."""
    if person.role is PersonRole.SUPERVISOR:
        action = AuditAction.READ_COUNSELLOR
        audit.record(services.store, person.name, action, counsellor=counsellor)
    else:
        services.accesses.record(person.name, AuditAction.READ_STATISTICS, "own goals")


def sessions_around(services: Services, person: Person, goal: Goal) -> Sessions:
    """Sessions of the goal's time so far, and of as many days before it."""
    scope = person.scope
    if person.role is PersonRole.SUPERVISOR:
        scope = Scope(team=scope.team, speaker=goal.counsellor)
    days = max(goal.ends_on - goal.starts_on, timedelta(days=FEWEST_DAYS))
    first = goal.starts_on - min(days, goal.starts_on - date.min)
    after = min(goal.ends_on, datetime.now(UTC).date()) + timedelta(days=1)
    store = services.read_store
    return Sessions(
        first,
        goal.starts_on,
        development.of_counsellor(store, scope, goal.counsellor, first, goal.starts_on),
        development.of_counsellor(store, scope, goal.counsellor, goal.starts_on, after),
    )


def progress(goal: Goal, around: Sessions) -> Progress:
    """The means of the goal's measure before it and since."""
    return Progress(
        goal,
        around.compared_from,
        _means(around.before, goal.measure),
        _means(around.since, goal.measure),
    )


def _means(found: Sequence[MeasuredSession], measure: str) -> list[MeanOf]:
    values: dict[str, list[float]] = defaultdict(list)
    for session in found:
        if measure in session.measures:
            values[session.bundle].append(session.measures[measure] / SCALE)
    return [_mean(bundle, some) for bundle, some in sorted(values.items())]


def _mean(bundle: str, values: Sequence[float]) -> MeanOf:
    n = len(values)
    if n < MIN_SESSIONS:
        return MeanOf(bundle, n, None, None, None)
    low, high = interval(values)
    return MeanOf(bundle, n, fmean(values), low, high)
