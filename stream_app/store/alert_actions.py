"""What people do to alerts: acknowledge, resolve, note; and mutes, which keep rules quiet."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import sqlalchemy as sa

from stream_app.errors import RapportError
from stream_app.store.reading import alerts as reading
from stream_app.store.reading.alerts import Action, ActionKind, AlertRead
from stream_app.store.reading.scope import Scope
from stream_app.store.repository import Store
from stream_app.store.tables import alert_actions, mutes


class NoSuchAlert(RapportError):
    """There is no alert of this id that the person may see."""


class NoSuchMute(RapportError):
    """There is no mute of this id in force that the person may end."""


class Reason(Enum):
    """Why an alert was acknowledged.

    ``justified`` and ``justified-handled`` count for the rule, ``false-alarm`` counts against it,
    ``not-now`` does not count.
    """

    JUSTIFIED = "justified"
    JUSTIFIED_HANDLED = "justified-handled"
    FALSE_ALARM = "false-alarm"
    NOT_NOW = "not-now"


@dataclass(frozen=True, slots=True)
class Mute:
    """Alerts of this rule, session and team call nobody until then; None = any."""

    mute_id: str
    rule: str | None
    session_id: str | None
    team: str | None
    until: datetime
    reason: str | None
    person: str
    at: datetime
    ended_at: datetime | None


def act(
    store: Store,
    scope: Scope,
    episode_id: str,
    kind: ActionKind,
    person: str,
    reason: Reason | None = None,
    note: str | None = None,
) -> tuple[Action, AlertRead]:
    """Write down what somebody did to an alert; the alert as it stands afterwards.

    The note is redacted as turns are.

    Raises:
        NoSuchAlert: there is none that may be seen.
    """
    found = reading.one(store, scope, episode_id)
    if found is None:
        raise NoSuchAlert("there is no such alert")
    action = Action(
        action_id=str(uuid.uuid4()),
        kind=kind,
        reason=reason.value if reason else None,
        note=store.privacy.redacted(note) if note else None,
        person=person,
        at=datetime.now(UTC),
    )
    row = {
        "action_id": action.action_id,
        "episode_id": episode_id,
        "session_id": found.session_id,
        "kind": kind.value,
        "reason": action.reason,
        "note": action.note,
        "person": person,
        "at": action.at,
    }
    with store.transaction() as connection:
        connection.execute(sa.insert(alert_actions).values(row))
    after = reading.one(store, scope, episode_id)
    if after is None:
        raise NoSuchAlert("the alert was erased meanwhile")
    return action, after


def mute(
    store: Store,
    *,
    rule: str | None,
    session_id: str | None,
    team: str | None,
    until: datetime,
    reason: str | None,
    person: str,
) -> Mute:
    """Keep alerts quiet until then. The reason is redacted as turns are."""
    made = Mute(
        mute_id=str(uuid.uuid4()),
        rule=rule,
        session_id=session_id,
        team=team,
        until=until,
        reason=store.privacy.redacted(reason) if reason else None,
        person=person,
        at=datetime.now(UTC),
        ended_at=None,
    )
    row = {name: getattr(made, name) for name in Mute.__slots__}
    with store.transaction() as connection:
        connection.execute(sa.insert(mutes).values(row))
    return made


def mutes_in_force(store: Store, scope: Scope, now: datetime | None = None) -> list[Mute]:
    """Mutes that keep alerts of this scope quiet, by the time of their end."""
    query = (
        sa.select(mutes)
        .where(
            mutes.c.until > (now or datetime.now(UTC)),
            mutes.c.ended_at.is_(None),
            *_within(scope, and_general=True),
        )
        .order_by(mutes.c.until, mutes.c.mute_id)
    )
    with store.reading() as connection:
        return [_mute(row) for row in connection.execute(query).mappings()]


def end_mute(store: Store, scope: Scope, mute_id: str) -> Mute:
    """Let alerts call again.

    Raises:
        NoSuchMute: it is not there, has ended, or is about another team.
    """
    now = datetime.now(UTC)
    mine = (
        mutes.c.mute_id == mute_id,
        mutes.c.until > now,
        mutes.c.ended_at.is_(None),
        *_within(scope),
    )
    with store.transaction() as connection:
        found = connection.execute(sa.select(mutes).where(*mine)).mappings().first()
        if found is None:
            raise NoSuchMute("there is no such mute, or it has ended")
        connection.execute(sa.update(mutes).where(mutes.c.mute_id == mute_id).values(ended_at=now))
    return _mute({**found, "ended_at": now})


def _within(scope: Scope, *, and_general: bool = False) -> list[sa.ColumnElement[bool]]:
    """Mutes of a scope's team and sessions; ``and_general``: also those of every team."""
    conditions = scope.conditions(mutes.c.session_id)
    if not conditions:
        return []
    own = sa.and_(*conditions)
    if scope.team is not None:
        own = own | (mutes.c.team == scope.team)
    if and_general:
        own = own | (mutes.c.session_id.is_(None) & mutes.c.team.is_(None))
    return [own]


def _mute(row: Any) -> Mute:
    return Mute(**{name: row[name] for name in Mute.__slots__})
