"""Actions on alerts (acknowledge, resolve, note) and mutes, which suppress notifications."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from stream_app.errors import RapportError
from stream_app.store.alerts import alerts as queries
from stream_app.store.alerts.alerts import Action, ActionKind, AlertRead
from stream_app.store.database.judgements import Reason
from stream_app.store.database.tables import alert_actions, mutes
from stream_app.store.keys.session_keys import place, seal_optional, unseal_or_none
from stream_app.store.sessions.scope import Scope
from stream_app.store.sessions.scored_turns import StateConflict
from stream_app.store.stream.repository import Store

UNFIRED_CANNOT_BE: Final = {
    ActionKind.ACKNOWLEDGE: "acknowledged",
    ActionKind.RESOLVE: "resolved",
    ActionKind.JUDGE: "judged",
}


class NoSuchAlert(RapportError):
    """The alert does not exist, or the person may not see it."""


class NoSuchMute(RapportError):
    """No mute with this id is in force, or the person may not end it."""


@dataclass(frozen=True, slots=True)
class Mute:
    """Suppresses notifications for a rule, session and team until a time; None = any."""

    mute_id: str
    rule: str | None
    session_id: str | None
    team: str | None
    until: datetime
    reason: str | None
    person: str
    at: datetime
    ended_at: datetime | None


def record_action(
    store: Store,
    scope: Scope,
    episode_id: str,
    kind: ActionKind,
    person: str,
    reason: Reason | None = None,
    note: str | None = None,
) -> tuple[Action, AlertRead]:
    """Store a person's action on an alert; return it and the updated alert.

    The note is redacted like turn text. ``justified-handled`` is stored as ``justified``.

    Raises:
        NoSuchAlert: the alert does not exist, or not in ``scope``.
        StateConflict: it has never fired, and so is no alert for people; notes are possible.
    """
    found = queries.one(store, scope, episode_id)
    if found is None:
        raise NoSuchAlert("there is no such alert")
    if kind in UNFIRED_CANNOT_BE and not found.has_fired:
        what = UNFIRED_CANNOT_BE[kind]
        raise StateConflict(f"the alert has never fired, so it cannot be {what}")
    if reason is Reason.JUSTIFIED_HANDLED:
        reason = Reason.JUSTIFIED
    action = Action(
        action_id=str(uuid.uuid4()),
        kind=kind,
        reason=reason.value if reason else None,
        note=store.privacy.redacted(note) if note else None,
        person=person,
        at=datetime.now(UTC),
    )
    where = place(alert_actions.c.note, found.session_id, action.action_id)
    with store.transaction() as connection:
        key = store.keys.get_or_create(connection, found.session_id, action.at)
        if key is None:
            raise NoSuchAlert("the alert was erased in the meantime")
        row = {
            "action_id": action.action_id,
            "episode_id": episode_id,
            "session_id": found.session_id,
            "kind": kind.value,
            "reason": action.reason,
            "note": seal_optional(key, action.note, where),
            "person": person,
            "at": action.at,
        }
        connection.execute(sa.insert(alert_actions).values(row))
    after = queries.one(store, scope, episode_id)
    if after is None:
        raise NoSuchAlert("the alert was erased in the meantime")
    return action, after


def create_mute(
    store: Store,
    *,
    rule: str | None,
    session_id: str | None,
    team: str | None,
    until: datetime,
    reason: str | None,
    person: str,
) -> Mute:
    """Suppress notifications until a time.

    The reason is redacted like turn text, and encrypted with a key of its own, because a mute
    without a session may still quote one.
    """
    created = Mute(
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
    row = {name: getattr(created, name) for name in Mute.__slots__}
    with store.transaction() as connection:
        if created.reason is not None:
            key, new = store.keys.create(created.mute_id, created.at)
            store.keys.write(connection, [new])
            row["reason"] = seal_optional(
                key, created.reason, place(mutes.c.reason, created.mute_id)
            )
        connection.execute(sa.insert(mutes).values(row))
    return created


def mutes_in_force(store: Store, scope: Scope, now: datetime | None = None) -> list[Mute]:
    """Mutes in force that affect alerts in this scope, in order of their end."""
    query = (
        sa.select(mutes)
        .where(
            mutes.c.until > (now or datetime.now(UTC)),
            mutes.c.ended_at.is_(None),
            *_in_scope(scope, include_general=True),
        )
        .order_by(mutes.c.until, mutes.c.mute_id)
    )
    with store.reading() as connection:
        found = connection.execute(query).mappings().all()
        keys = store.keys.load(connection, [row["mute_id"] for row in found])
    return [_mute(row, keys.get(row["mute_id"])) for row in found]


def end_mute(store: Store, scope: Scope, mute_id: str) -> Mute:
    """End a mute early.

    Raises:
        NoSuchMute: it does not exist, has ended, or belongs to another team.
    """
    now = datetime.now(UTC)
    matches = (
        mutes.c.mute_id == mute_id,
        mutes.c.until > now,
        mutes.c.ended_at.is_(None),
        *_in_scope(scope),
    )
    with store.transaction() as connection:
        found = connection.execute(sa.select(mutes).where(*matches)).mappings().first()
        if found is None:
            raise NoSuchMute("there is no such mute, or it has ended")
        connection.execute(sa.update(mutes).where(mutes.c.mute_id == mute_id).values(ended_at=now))
        key = store.keys.load(connection, [mute_id]).get(mute_id)
    return _mute({**found, "ended_at": now}, key)


def _in_scope(scope: Scope, *, include_general: bool = False) -> list[sa.ColumnElement[bool]]:
    """Conditions for mutes of a scope's team and sessions; ``include_general``: or of any."""
    conditions = scope.conditions(mutes.c.session_id)
    if not conditions:
        return []
    own = sa.and_(*conditions)
    if scope.team is not None:
        own = own | (mutes.c.team == scope.team)
    if include_general:
        own = own | (mutes.c.session_id.is_(None) & mutes.c.team.is_(None))
    return [own]


def _mute(row: Any, key: bytes | None) -> Mute:
    values = {name: row[name] for name in Mute.__slots__}
    reason = unseal_or_none(key, row["reason"], place(mutes.c.reason, row["mute_id"]))
    return Mute(**{**values, "reason": reason})
