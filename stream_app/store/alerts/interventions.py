"""Supervisors' interventions in running sessions, and the receipts of counsellors' desks.

The table is also the outbox: a row is due until the broker has confirmed its message. The outbox of
the worker would hold the note's text unencrypted.
"""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, Final

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy import Connection

from stream_app.contracts.interventions import Intervention, InterventionKind
from stream_app.contracts.scores import SessionStatus
from stream_app.store.accounts.people import IngestScope
from stream_app.store.database.any_of import IDS, any_of
from stream_app.store.database.tables import alerts, interventions, sessions
from stream_app.store.keys.session_keys import place, seal_optional, unseal_or_none
from stream_app.store.sessions import sessions as session_cards
from stream_app.store.sessions.scope import SCOPES, Scope
from stream_app.store.sessions.scored_turns import NotFound, StateConflict
from stream_app.store.stream.repository import Store
from stream_app.store.work.assignments import may_be_analysed


@dataclass(frozen=True, slots=True)
class InterventionRead:
    """An intervention and its state: stored, published, received by a desk."""

    intervention_id: str
    session_id: str
    kind: InterventionKind
    text: Annotated[str | None, Field(description="Of a note, redacted like turn text")]
    episode_id: Annotated[str | None, Field(description="The alert that it answers")]
    person: Annotated[str, Field(description="Name of the supervisor")]
    at: datetime
    published_at: Annotated[
        datetime | None, Field(description="When the broker confirmed it; null: not yet")
    ]
    received_by: Annotated[str | None, Field(description="Account of the desk that confirmed it")]
    received_at: Annotated[
        datetime | None, Field(description="When a desk first confirmed it; null: not yet")
    ]

    @property
    def message(self) -> Intervention:
        """The message for the desk."""
        names = ("intervention_id", "session_id", "kind", "text", "episode_id", "person", "at")
        return Intervention(**{name: getattr(self, name) for name in names})


@dataclass(frozen=True, slots=True)
class TakenOver:
    """The leader of a session, and since when."""

    person: str
    at: datetime


def intervene(
    store: Store,
    scope: Scope,
    session_id: str,
    kind: InterventionKind,
    person: str,
    text: str | None = None,
    episode_id: str | None = None,
) -> InterventionRead:
    """Store an intervention; it is published later. The text is redacted like turn text.

    Raises:
        NotFound: the session or the alert does not exist in ``scope``.
        StateConflict: the session has ended, it may not be analysed, somebody has already taken it
            over, or nobody has.
    """
    card = session_cards.one(store, scope, session_id)
    if card is None:
        raise NotFound("no such session")
    if card.status is SessionStatus.CLOSED:
        raise StateConflict("the session has ended")
    new = InterventionRead(
        intervention_id=str(uuid.uuid4()),
        session_id=session_id,
        kind=kind,
        text=store.privacy.redacted(text) if text else None,
        episode_id=episode_id,
        person=person,
        at=datetime.now(UTC),
        published_at=None,
        received_by=None,
        received_at=None,
    )
    with store.transaction() as connection:
        if not may_be_analysed(connection, session_id, lock=True):
            raise StateConflict("consent was not given or was withdrawn")
        _check_alert(connection, session_id, episode_id)
        _check_turn(connection, session_id, kind)
        key = store.keys.get_or_create(connection, session_id, new.at)
        if key is None:
            raise NotFound("the session was erased in the meantime")
        row = {name: getattr(new, name) for name in InterventionRead.__slots__}
        row |= {"kind": kind.value, "text": seal_optional(key, new.text, _place(new))}
        connection.execute(sa.insert(interventions).values(row))
    return new


def of_session(store: Store, scope: Scope, session_id: str) -> list[InterventionRead]:
    """All interventions in a session, oldest first; none outside ``scope``."""
    return _run(store, _of_session(scope), {"session_id": session_id})


@lru_cache(maxsize=SCOPES)
def _of_session(scope: Scope) -> sa.Select[Any]:
    mine = interventions.c.session_id == sa.bindparam("session_id")
    return _select(mine, *scope.conditions(interventions.c.session_id))


def leader(oldest_first: Iterable[InterventionRead]) -> TakenOver | None:
    """Return who leads a session after these interventions in it."""
    found = None
    for each in oldest_first:
        if each.kind is not InterventionKind.NOTE:
            taken = each.kind is InterventionKind.TAKE_OVER
            found = TakenOver(each.person, each.at) if taken else None
    return found


def taken_over(store: Store, session_ids: Iterable[str]) -> dict[str, TakenOver]:
    """Select those of these sessions that a supervisor has taken over and not handed back."""
    with store.reading() as connection:
        return _leaders(connection, list(session_ids))


def receive(
    store: Store, sends: IngestScope, intervention_id: str, person: str
) -> tuple[InterventionRead, bool]:
    """Store that a desk has shown an intervention; the first receipt counts.

    Returns the intervention and whether this receipt was the first.

    Raises:
        NotFound: it does not exist, or belongs to a session outside the token's limits.
    """
    this = interventions.c.intervention_id == intervention_id
    limits = [sessions.c[name] == value for name, value in sends.limits]
    inside = sa.select(sessions.c.session_id).where(~sessions.c.hidden, *limits)
    with store.transaction() as connection:
        written = connection.execute(
            sa.update(interventions)
            .where(
                this,
                interventions.c.received_at.is_(None),
                interventions.c.session_id.in_(inside),
            )
            .values(received_by=person, received_at=datetime.now(UTC))
        ).rowcount
    found = _find(store, this, interventions.c.session_id.in_(inside))
    if not found:
        raise NotFound("no such intervention")
    return found[0], bool(written)


def unpublished(
    store: Store, own: Iterable[str], stored_before: datetime, limit: int = 100
) -> list[InterventionRead]:
    """Interventions to publish, oldest first: ``own``, and others stored before a time.

    Those of hidden sessions wait: their consent was withdrawn.
    """
    due = (interventions.c.at < stored_before) | interventions.c.intervention_id.in_(list(own))
    shown = sa.select(sessions.c.session_id).where(~sessions.c.hidden)
    waiting = interventions.c.published_at.is_(None)
    return _find(store, waiting, due, interventions.c.session_id.in_(shown), limit=limit)


def mark_published(store: Store, intervention_id: str) -> None:
    """Store that the broker has confirmed the message."""
    this = interventions.c.intervention_id == intervention_id
    with store.transaction() as connection:
        connection.execute(
            sa.update(interventions).where(this).values(published_at=datetime.now(UTC))
        )


def _check_alert(connection: Connection, session_id: str, episode_id: str | None) -> None:
    if episode_id is None:
        return
    raised = sa.select(alerts.c.alert_id).where(
        alerts.c.episode_id == episode_id, alerts.c.session_id == session_id
    )
    if connection.scalar(raised.limit(1)) is None:
        raise NotFound("the session has no such alert")


def _check_turn(connection: Connection, session_id: str, kind: InterventionKind) -> None:
    """Refuse a second take-over, and a hand-back without one."""
    leader = _leaders(connection, [session_id]).get(session_id)
    if kind is InterventionKind.TAKE_OVER and leader is not None:
        raise StateConflict(f"{leader.person} has already taken over this session")
    if kind is InterventionKind.HAND_BACK and leader is None:
        raise StateConflict("nobody has taken over this session")


_LEADING: Final = (
    sa.select(
        interventions.c.session_id,
        interventions.c.kind,
        interventions.c.person,
        interventions.c.at,
    )
    .where(
        any_of(interventions.c.session_id, IDS),
        interventions.c.kind != InterventionKind.NOTE.value,
    )
    .order_by(interventions.c.at, interventions.c.intervention_id)
)


def _leaders(connection: Connection, session_ids: Sequence[str]) -> dict[str, TakenOver]:
    found: dict[str, TakenOver] = {}
    for row in connection.execute(_LEADING, {IDS: session_ids}):
        if row.kind == InterventionKind.TAKE_OVER.value:
            found[row.session_id] = TakenOver(row.person, row.at)
        else:
            found.pop(row.session_id, None)
    return found


def _find(
    store: Store, *conditions: sa.ColumnElement[bool], limit: int | None = None
) -> list[InterventionRead]:
    return _run(store, _select(*conditions).limit(limit), {})


def _select(*conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
    table = interventions
    return sa.select(table).where(*conditions).order_by(table.c.at, table.c.intervention_id)


def _run(store: Store, query: sa.Select[Any], given: dict[str, str]) -> list[InterventionRead]:
    with store.reading() as connection:
        found = connection.execute(query, given).mappings().all()
        keys = store.keys.load(connection, sorted({row["session_id"] for row in found}))
    return [_read(row, keys.get(row["session_id"])) for row in found]


def _read(row: sa.RowMapping, key: bytes | None) -> InterventionRead:
    values = {name: row[name] for name in InterventionRead.__slots__}
    values["kind"] = InterventionKind(row["kind"])
    where = place(interventions.c.text, row["session_id"], row["intervention_id"])
    values["text"] = unseal_or_none(key, row["text"], where)
    return InterventionRead(**values)


def _place(intervention: InterventionRead) -> str:
    return place(interventions.c.text, intervention.session_id, intervention.intervention_id)
