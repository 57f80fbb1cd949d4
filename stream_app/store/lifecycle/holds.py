"""Legal holds: a session on hold is neither purged by age nor erased."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.errors import RapportError
from stream_app.store.accounts.audit import AuditAction, record
from stream_app.store.database import session_locks
from stream_app.store.database.connection import Database
from stream_app.store.database.tables import archived_sessions, holds, sessions
from stream_app.store.stream.repository import Store

MAX_REASON_CHARS = 200


class SessionHeld(RapportError):
    """A session on legal hold cannot be erased."""


class HoldError(RapportError):
    """A hold cannot be added or removed."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A session on hold since ``at``; ``reason``: for example the number of the case."""

    session_id: str
    reason: str
    person: str
    at: datetime


def add(store: Store, session_id: str, reason: str, person: str, now: datetime) -> None:
    """Put a session on hold. Audited.

    Raises:
        HoldError: it is unknown or already on hold, or the reason is empty or too long.
    """
    if not reason.strip() or len(reason) > MAX_REASON_CHARS:
        raise HoldError(f"a hold needs a reason of at most {MAX_REASON_CHARS} characters")
    row = {"session_id": session_id, "reason": reason, "person": person, "at": now}
    with store.transaction() as connection:
        stored = sa.select(sessions.c.session_id).where(sessions.c.session_id == session_id)
        moved = sa.select(archived_sessions.c.month).where(
            archived_sessions.c.session_id == session_id
        )
        locked = connection.scalar(stored.with_for_update())  # it is not erased meanwhile
        if locked is None and connection.scalar(moved) is None:
            raise HoldError("no such session is stored")
        if held(connection, [session_id]):
            raise HoldError("this session is already on legal hold")
        connection.execute(sa.insert(holds), [row])
    record(store, person, AuditAction.HOLD, session_id, "added")


def remove(store: Store, session_id: str, person: str) -> None:
    """End a session's hold; from then on it expires and can be erased. Audited.

    Raises:
        HoldError: it is not on hold.
    """
    with store.transaction() as connection:
        deleted = connection.execute(sa.delete(holds).where(holds.c.session_id == session_id))
        if not deleted.rowcount:
            raise HoldError("this session is not on legal hold")
    record(store, person, AuditAction.HOLD, session_id, "removed")


def find(database: Database, session_ids: Sequence[str] | None = None) -> list[Hold]:
    """All holds, or those of some sessions; oldest first."""
    query = sa.select(holds).order_by(holds.c.at, holds.c.session_id)
    if session_ids is not None:
        query = query.where(holds.c.session_id.in_(session_ids))
    with database.reading() as connection:
        return [Hold(**row) for row in connection.execute(query).mappings()]


def refuse_held(connection: Connection, session_ids: Sequence[str]) -> None:
    """Refuse to erase sessions on hold; no hold can be added until the transaction ends.

    Raises:
        SessionHeld: at least one is on hold.
    """
    session_locks.lock(connection, session_ids)
    if count := len(held(connection, session_ids)):
        raise SessionHeld(
            f"{count} of {len(session_ids)} sessions are on legal hold, so none was erased: "
            "`rapport hold list` shows them, `rapport hold remove` ends a hold"
        )


def held(connection: Connection, session_ids: Sequence[str]) -> set[str]:
    """Select those of these sessions that are on hold."""
    query = sa.select(holds.c.session_id).where(holds.c.session_id.in_(session_ids))
    return set(connection.scalars(query))


def not_held(session_id: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """Condition of a query with this column of session ids."""
    return ~sa.exists().where(holds.c.session_id == session_id)
