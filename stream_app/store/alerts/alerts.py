"""Alerts as shown to people: one per episode, with its transitions and people's actions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, Final

import sqlalchemy as sa
from pydantic import Field

from stream_app.contracts.scores import Alert, AlertState, SessionStatus, Severity
from stream_app.store.database.any_of import IDS, any_of
from stream_app.store.database.described import described_by
from stream_app.store.database.judgements import JUDGED, JUSTIFIED
from stream_app.store.database.pages import Key, Page, decode_cursor, encode_cursor, rows_after
from stream_app.store.database.tables import (
    UtcDateTime,
    alert_actions,
    alerts,
    mutes,
    session_scores,
    sessions,
)
from stream_app.store.keys.session_keys import place, unseal_or_none
from stream_app.store.sessions.scope import SCOPES, Scope
from stream_app.store.stream.repository import Store

ORDER = "alerts"


class ShownState(Enum):
    """State of an alert, including people's actions; ``lapsed``: it was pending and never fired."""

    PENDING = "pending"
    FIRING = "firing"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"
    LAPSED = "lapsed"


class ActionKind(Enum):
    """Kinds of actions that people can take on an alert."""

    ACKNOWLEDGE = "acknowledge"
    RESOLVE = "resolve"
    NOTE = "note"
    JUDGE = "judge"


@dataclass(frozen=True, slots=True)
@described_by(Alert)
class Transition:
    """One transition of the alert's state machine."""

    alert_id: str
    state: AlertState
    previous: AlertState
    seq: int | None
    occurred_at: datetime
    value: float | None
    threshold: float | None
    reason: str
    values: dict[str, float]
    turns: list[int]


@dataclass(frozen=True, slots=True)
class Action:
    """A person's action on an alert."""

    action_id: str
    kind: ActionKind
    reason: str | None
    note: str | None
    person: str
    at: datetime


@dataclass(frozen=True, slots=True)
@described_by(Alert)
class AlertRead:
    """An alert with its reason in words and numbers, transitions and actions."""

    episode_id: str
    rule: str
    severity: Severity
    labels: dict[str, str]
    session_id: str
    bundle: str
    team: str | None
    domain: str | None
    state: ShownState
    muted: bool
    episode: int
    began_at: datetime
    changed_at: datetime
    reason: str
    value: float | None
    threshold: float | None
    values: dict[str, float]
    turns: list[int]
    protocol: str | None
    judgement: Annotated[
        str | None,
        Field(description="People's last judgement: `justified` or `false-alarm`; null: none"),
    ]
    transitions: list[Transition]
    actions: list[Action]

    @property
    def has_fired(self) -> bool:
        """Whether it fired; otherwise it was only ever pending."""
        return any(step.state is AlertState.FIRING for step in self.transitions)


@dataclass(frozen=True, slots=True)
class AlertFilter:
    """Conditions, combined with AND; None = any.

    ``fired``: whether it has ever fired. ``judged``: whether somebody has judged it. ``live``: only
    of open sessions.
    """

    states: frozenset[ShownState] | None = None
    rule: str | None = None
    severity: Severity | None = None
    session_id: str | None = None
    team: str | None = None
    fired: bool | None = None
    judged: bool | None = None
    live: bool = False


def find(
    store: Store,
    scope: Scope,
    chosen: AlertFilter,
    cursor: str | None = None,
    limit: int = 50,
    now: datetime | None = None,
) -> Page[AlertRead]:
    """A page of alerts, most recently started first.

    Raises:
        BadCursor: the cursor belongs to another list.
    """
    listed = chosen.session_id is not None
    given = {IDS: [chosen.session_id]} if listed else {}
    query, keys = _newest_first(scope, replace(chosen, session_id=None), limit + 1, listed=listed)
    if cursor is not None:
        query = query.where(rows_after(keys, decode_cursor(ORDER, cursor, [datetime, str])))
    with store.reading() as connection:
        found = connection.execute(query, given).mappings().all()
        items = _read(store, connection, found[:limit], now or datetime.now(UTC))
    if len(found) <= limit:
        return Page(items, None)
    last = found[limit - 1]
    return Page(items, encode_cursor(ORDER, [last["began_at"], last["episode_id"]]))


@lru_cache(maxsize=SCOPES)
def _newest_first(
    scope: Scope, chosen: AlertFilter, limit: int, *, listed: bool
) -> tuple[sa.Select[Any], list[tuple[Key, bool]]]:
    """A list's statement, and the columns of its order, descending or not."""
    episodes = select_episodes(scope, chosen, listed=listed)
    keys: list[tuple[Key, bool]] = [(episodes.c.began_at, True), (episodes.c.episode_id, False)]
    query = sa.select(episodes).order_by(episodes.c.began_at.desc(), episodes.c.episode_id)
    return query.limit(limit), keys


def one(store: Store, scope: Scope, episode_id: str) -> AlertRead | None:
    """One alert; None if it does not exist in ``scope``."""
    episodes = select_episodes(scope, AlertFilter())
    query = sa.select(episodes).where(episodes.c.episode_id == episode_id)
    with store.reading() as connection:
        found = connection.execute(query).mappings().all()
        items = _read(store, connection, found, datetime.now(UTC))
    return items[0] if items else None


def of_sessions(store: Store, scope: Scope, session_ids: Sequence[str]) -> list[AlertRead]:
    """All alerts of these sessions, ordered by session and time."""
    episodes = select_episodes(scope, AlertFilter(), listed=True)
    query = sa.select(episodes).order_by(
        episodes.c.session_id, episodes.c.began_at, episodes.c.episode_id
    )
    with store.reading() as connection:
        found = connection.execute(query, {IDS: session_ids}).mappings().all()
        return _read(store, connection, found, datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class AlertCount:
    """Number of alerts in a state, by whether they have fired and whether somebody judged them."""

    state: ShownState
    fired: bool
    judged: bool
    number: int

    def matches(self, chosen: AlertFilter) -> bool:
        """Whether these alerts meet the filter's conditions on state, firing and judgement."""
        return (
            (chosen.states is None or self.state in chosen.states)
            and chosen.fired in (None, self.fired)
            and chosen.judged in (None, self.judged)
        )


def counts(store: Store, scope: Scope) -> list[AlertCount]:
    """Numbers of all alerts in ``scope``."""
    with store.reading() as connection:
        return [
            AlertCount(ShownState(shown), bool(fired), bool(judged), number)
            for shown, fired, judged, number in connection.execute(_counts(scope))
        ]


@lru_cache(maxsize=SCOPES)
def _counts(scope: Scope) -> sa.Select[Any]:
    each = select_episodes(scope, AlertFilter())
    found = sa.select(
        each.c.shown, each.c.fired, sa.case((_judged(each), 1), else_=0).label("judged")
    ).subquery()
    return sa.select(*found.c, sa.func.count()).group_by(*found.c)


def _judged(episodes: sa.Subquery) -> sa.ColumnElement[bool]:
    """Whether somebody has judged the alert."""
    return sa.exists().where(
        alert_actions.c.episode_id == episodes.c.episode_id, alert_actions.c.reason.in_(JUDGED)
    )


@lru_cache(maxsize=SCOPES)
def select_episodes(scope: Scope, chosen: AlertFilter, *, listed: bool = False) -> sa.Subquery:
    """One row per episode, with its rule and shown state.

    ``listed``: only of the sessions in the parameter ``ids``, whatever ``chosen.session_id`` is.
    Kept, because building the statement takes longer than running it.
    """

    def has(state: AlertState) -> sa.ColumnElement[int]:
        return sa.func.max(sa.case((alerts.c.state == state.value, 1), else_=0))

    machine = (
        sa.select(
            alerts.c.episode_id,
            alerts.c.session_id,
            sa.func.min(alerts.c.rule).label("rule"),
            sa.func.min(alerts.c.occurred_at).label("began_at"),
            has(AlertState.FIRING).label("fired"),
            has(AlertState.RESOLVED).label("resolved"),
            has(AlertState.INACTIVE).label("lapsed"),
        )
        .where(*scope.conditions(alerts.c.session_id))
        .group_by(alerts.c.episode_id, alerts.c.session_id)
    )
    if listed:
        machine = machine.where(any_of(alerts.c.session_id, IDS))
    stepped = machine.where(*_of_transitions(chosen)).subquery()

    def did(kind: ActionKind) -> sa.ColumnElement[bool]:
        return sa.exists().where(
            alert_actions.c.episode_id == stepped.c.episode_id,
            alert_actions.c.kind == kind.value,
        )

    state = sa.case(
        ((stepped.c.resolved == 1) | did(ActionKind.RESOLVE), ShownState.RESOLVED.value),
        (stepped.c.lapsed == 1, ShownState.LAPSED.value),
        (did(ActionKind.ACKNOWLEDGE), ShownState.ACKNOWLEDGED.value),
        (stepped.c.fired == 1, ShownState.FIRING.value),
        else_=ShownState.PENDING.value,
    )
    shown = sa.select(
        stepped.c.episode_id,
        stepped.c.session_id,
        stepped.c.rule,
        stepped.c.began_at,
        stepped.c.fired,
        state.label("shown"),
    ).subquery()
    kept = sa.select(shown)
    if chosen.fired is not None:
        kept = kept.where(shown.c.fired == int(chosen.fired))
    if chosen.judged is not None:
        judged = _judged(shown)
        kept = kept.where(judged if chosen.judged else ~judged)
    if chosen.states is not None:
        kept = kept.where(shown.c.shown.in_([state.value for state in chosen.states]))
    return kept.subquery()


def _of_transitions(chosen: AlertFilter) -> Iterator[sa.ColumnElement[bool]]:
    """Conditions on a transition's rule and severity, and its session's state and team."""
    for column, value in (
        (alerts.c.rule, chosen.rule),
        (alerts.c.severity, chosen.severity.value if chosen.severity else None),
    ):
        if value is not None:
            yield column == value
    if chosen.live:
        is_open = session_scores.c.status == SessionStatus.OPEN.value
        yield alerts.c.session_id.in_(sa.select(session_scores.c.session_id).where(is_open))
    if chosen.team is not None:
        yield from Scope(team=chosen.team).conditions(alerts.c.session_id)


_RANK: Final = {
    AlertState.PENDING.value: 0,
    AlertState.FIRING.value: 1,
    AlertState.RESOLVED.value: 2,
    AlertState.INACTIVE.value: 2,
}
_STEPS: Final = (
    sa.select(alerts)
    .where(any_of(alerts.c.episode_id, IDS))
    .order_by(sa.case(_RANK, value=alerts.c.state))
)
_ACTIONS: Final = (
    sa.select(alert_actions)
    .where(any_of(alert_actions.c.episode_id, IDS))
    .order_by(alert_actions.c.at, alert_actions.c.action_id)
)
_FACTS: Final = sa.select(sessions.c.session_id, sessions.c.team, sessions.c.domain).where(
    any_of(sessions.c.session_id, IDS)
)


def _read(
    store: Store, connection: sa.Connection, found: Sequence[sa.RowMapping], now: datetime
) -> list[AlertRead]:
    ids = [row["episode_id"] for row in found]
    if not ids:
        return []
    steps: dict[str, list[sa.RowMapping]] = {}
    for row in connection.execute(_STEPS, {IDS: ids}).mappings():
        steps.setdefault(row["episode_id"], []).append(row)
    acts: dict[str, list[Action]] = {}
    did = connection.execute(_ACTIONS, {IDS: ids}).mappings().all()
    noted = sorted({row["session_id"] for row in did if row["note"] is not None})
    keys = store.keys.load(connection, noted)
    for row in did:
        acts.setdefault(row["episode_id"], []).append(_action(row, keys.get(row["session_id"])))
    given = {IDS: {row["session_id"] for row in found}}
    facts: dict[str, Any] = {row.session_id: row for row in connection.execute(_FACTS, given)}
    muting = mutes_in_force(connection, now)
    return [
        _alert(row, steps[row["episode_id"]], acts.get(row["episode_id"], []), facts, muting)
        for row in found
    ]


def _alert(
    row: sa.RowMapping,
    steps: list[sa.RowMapping],
    acts: list[Action],
    facts: dict[str, Any],
    muting: Sequence[sa.RowMapping],
) -> AlertRead:
    last = steps[-1]
    main = next((s for s in steps if s["state"] == AlertState.FIRING.value), steps[0])
    fact = facts.get(row["session_id"])
    team = fact.team if fact else None
    return AlertRead(
        episode_id=row["episode_id"],
        rule=last["rule"],
        severity=Severity(last["severity"]),
        labels=last["labels"],
        session_id=row["session_id"],
        bundle=last["bundle"],
        team=team,
        domain=fact.domain if fact else None,
        state=ShownState(row["shown"]),
        muted=is_muted(muting, last["rule"], row["session_id"], team),
        episode=last["episode"],
        began_at=steps[0]["occurred_at"],
        changed_at=max([last["occurred_at"], *(act.at for act in acts)]),
        reason=main["reason"],
        value=main["value"],
        threshold=main["threshold"],
        values=main["values"],
        turns=main["turns"],
        protocol=main["protocol"],
        judgement=_judgement(acts),
        transitions=[_transition(step) for step in steps],
        actions=acts,
    )


def _judgement(acts: Sequence[Action]) -> str | None:
    """The last judgement; earlier releases stored two values for the same."""
    given = [act.reason for act in acts if act.reason in JUDGED]
    if not given:
        return None
    return JUSTIFIED[0] if given[-1] in JUSTIFIED else given[-1]


_MUTES: Final = sa.select(mutes.c.rule, mutes.c.session_id, mutes.c.team).where(
    mutes.c.until > sa.bindparam("now", type_=UtcDateTime()), mutes.c.ended_at.is_(None)
)


def mutes_in_force(connection: sa.Connection, now: datetime) -> Sequence[sa.RowMapping]:
    """The mutes that hold now."""
    return connection.execute(_MUTES, {"now": now}).mappings().all()


def is_muted(muting: Sequence[sa.RowMapping], rule: str, session_id: str, team: str | None) -> bool:
    """Whether one of these mutes is about an alert of this rule, session and team."""
    return any(
        mute["rule"] in (None, rule)
        and mute["session_id"] in (None, session_id)
        and mute["team"] in (None, team)
        for mute in muting
    )


def _transition(row: sa.RowMapping) -> Transition:
    return Transition(
        alert_id=row["alert_id"],
        state=AlertState(row["state"]),
        previous=AlertState(row["previous"]),
        seq=row["seq"],
        occurred_at=row["occurred_at"],
        value=row["value"],
        threshold=row["threshold"],
        reason=row["reason"],
        values=row["values"],
        turns=row["turns"],
    )


def _action(row: sa.RowMapping, key: bytes | None) -> Action:
    where = place(alert_actions.c.note, row["session_id"], row["action_id"])
    return Action(
        action_id=row["action_id"],
        kind=ActionKind(row["kind"]),
        reason=row["reason"],
        note=unseal_or_none(key, row["note"], where),
        person=row["person"],
        at=row["at"],
    )
