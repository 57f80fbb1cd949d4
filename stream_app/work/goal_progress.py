"""Coaching goals: who may set one, the measure before and since, and whether it changed.

The unit is the session, and means are by model, as on the counsellor's page of development. The
first statement about a change comes after four weeks. A difference does not show that the coaching
caused it.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from statistics import fmean
from typing import Annotated, Final

from pydantic import Field

from stream_app.analytics.views.rollup_source import SCALE
from stream_app.findings.offered_measures import offered
from stream_app.findings.trends import MIN_SESSIONS, difference, interval
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.database.tables import ROLLED_UP
from stream_app.store.sessions import counsellors
from stream_app.store.sessions.scope import Scope
from stream_app.store.sessions.scored_turns import InvalidJudgement, NotFound
from stream_app.store.work import coaching_goals, development
from stream_app.store.work.coaching_goals import Goal
from stream_app.store.work.development import MeasuredSession
from stream_app.work import acting
from stream_app.work.desk import Desk

FEWEST_DAYS: Final = 28
"""Sessions of at least this many days before a goal are compared with those since; and nothing is
said about a change before as many days have passed."""
Target = Annotated[
    float,
    Field(ge=0, le=100, allow_inf_nan=False, description="Mean of the measure to reach"),
]


@dataclass(frozen=True, slots=True)
class MeanOf:
    """A mean over sessions with its 95 % interval; without them if ``n`` is too small."""

    bundle: Annotated[str, Field(description="The model that scored; compare within one")]
    n: Annotated[int, Field(description="Sessions")]
    mean: float | None
    low: float | None
    high: float | None


class Reached(Enum):
    """How the mean since the goal stands to the target, going from the baseline.

    ``unclear``: the target lies within the interval of the mean since.
    """

    YES = "yes"
    UNCLEAR = "unclear"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Change:
    """Difference of the means since and before the goal, with Welch's 95 % interval."""

    bundle: Annotated[str, Field(description="The model that scored both times")]
    baseline: float
    since: float
    difference: float
    low: float
    high: float
    target: Annotated[Reached | None, Field(description="None without a target")]

    @property
    def clear(self) -> bool:
        """Whether the interval excludes no change."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class Progress:
    """A goal with the means of its measure; ``since`` ends with the goal.

    ``changes``: by model; empty before ``due``, and of models with too few sessions at either time.
    """

    goal: Goal
    compared_from: Annotated[date, Field(description="First day of the time before the goal")]
    before: list[MeanOf]
    since: list[MeanOf]
    due: Annotated[date, Field(description="First day with a statement about a change")]
    changes: list[Change]


@dataclass(frozen=True, slots=True)
class Sessions:
    """The counsellor's sessions before a goal and since, as far as the reader may see them."""

    compared_from: date
    starts_on: date
    before: list[MeasuredSession]
    since: list[MeasuredSession]


def add(
    desk: Desk,
    person: Person,
    counsellor: str,
    measure: str,
    text: str,
    starts_on: date,
    ends_on: date,
    target: float | None = None,
) -> Goal:
    """Set a goal for a counsellor whose sessions the supervisor reads; audited.

    Raises:
        NotFound: there is no such counsellor.
        InvalidJudgement: there is no such measure, or the goal ends before it starts.
        StateConflict: the policy does not allow it (``work.acting``).
    """
    acting.check_allowed(desk)
    if counsellors.one(desk.store, person.scope, counsellor) is None:
        raise NotFound("no such counsellor")
    measures = [name for name in offered(desk.settings) if name in ROLLED_UP]
    if measure not in measures:
        raise InvalidJudgement(f"the measures are {', '.join(measures)}")
    if ends_on <= starts_on:
        raise InvalidJudgement("a goal ends after it starts")
    acting.check_counsellor_read(desk, person, counsellor)
    record_read(desk, person, counsellor)
    return coaching_goals.add(
        desk.store, person, counsellor, measure, text, starts_on, ends_on, target
    )


def record_read(desk: Desk, person: Person, counsellor: str) -> None:
    """Record that somebody reads or sets goals of a counsellor."""
    if person.role is PersonRole.SUPERVISOR:
        action = AuditAction.READ_COUNSELLOR
        audit.record(desk.store, person.name, action, counsellor=counsellor)
    else:
        desk.accesses.record(person.name, AuditAction.READ_STATISTICS, "own goals")


def sessions_around(desk: Desk, person: Person, goal: Goal) -> Sessions:
    """Sessions of the goal's time so far, and of as many days before it."""
    scope = person.scope
    if person.role is PersonRole.SUPERVISOR:
        scope = Scope(team=scope.team, speaker=goal.counsellor)
    days = max(goal.ends_on - goal.starts_on, timedelta(days=FEWEST_DAYS))
    first = goal.starts_on - min(days, goal.starts_on - date.min)
    after = min(goal.ends_on, datetime.now(UTC).date()) + timedelta(days=1)
    store = desk.read_store
    return Sessions(
        first,
        goal.starts_on,
        development.of_counsellor(store, scope, goal.counsellor, first, goal.starts_on),
        development.of_counsellor(store, scope, goal.counsellor, goal.starts_on, after),
    )


def progress(goal: Goal, around: Sessions, today: date) -> Progress:
    """The means of the goal's measure before it and since, and the changes."""
    before = _values(around.before, goal.measure)
    since = _values(around.since, goal.measure)
    due = goal.starts_on + min(timedelta(days=FEWEST_DAYS), date.max - goal.starts_on)
    return Progress(
        goal,
        around.compared_from,
        _means(before),
        _means(since),
        due,
        _changes(before, since, goal.target) if today >= due else [],
    )


def baselines(found: Sequence[MeasuredSession]) -> dict[str, float]:
    """The mean of each measure over the sessions of the model that scored the latest one."""
    if not found:
        return {}
    latest = found[-1].bundle
    own = [session for session in found if session.bundle == latest]
    values = {name: _values(own, name).get(latest, []) for name in ROLLED_UP}
    return {name: fmean(some) for name, some in values.items() if len(some) >= MIN_SESSIONS}


_Values = dict[str, list[float]]
"""Values of sessions by the model that scored them."""


def _values(found: Sequence[MeasuredSession], measure: str) -> _Values:
    values: _Values = defaultdict(list)
    for session in found:
        if measure in session.measures:
            values[session.bundle].append(session.measures[measure] / SCALE)
    return dict(sorted(values.items()))


def _means(values: _Values) -> list[MeanOf]:
    return [_mean(bundle, some) for bundle, some in values.items()]


def _mean(bundle: str, values: Sequence[float]) -> MeanOf:
    n = len(values)
    if n < MIN_SESSIONS:
        return MeanOf(bundle, n, None, None, None)
    low, high = interval(values)
    return MeanOf(bundle, n, fmean(values), low, high)


def _changes(before: _Values, since: _Values, target: float | None) -> list[Change]:
    return [
        _change(bundle, before[bundle], some, target)
        for bundle, some in since.items()
        if min(len(some), len(before.get(bundle, ()))) >= MIN_SESSIONS
    ]


def _change(
    bundle: str, before: Sequence[float], since: Sequence[float], target: float | None
) -> Change:
    baseline, now = fmean(before), fmean(since)
    change, low, high = difference(since, before)
    reached = None if target is None else _reached(baseline, interval(since), target)
    return Change(bundle, baseline, now, change, low, high, reached)


def _reached(baseline: float, since: tuple[float, float], target: float) -> Reached:
    """Whether the mean since has reached the target; a goal may be to lower a measure."""
    low, high = since
    beyond, short = (low >= target, high < target)
    if target < baseline:
        beyond, short = (high <= target, low > target)
    return Reached.YES if beyond else Reached.NO if short else Reached.UNCLEAR
