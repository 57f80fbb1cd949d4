"""The audit trail: who read which transcript, and administrative actions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

import sqlalchemy as sa

from stream_app.store.queries.pages import Page, decode_cursor, encode_cursor
from stream_app.store.repository import Store
from stream_app.store.tables import audit

ORDER = "audit"
COMMAND_LINE = "(command line)"
"""The person of entries written by commands, which run without sign-in."""
WORKER = "(worker)"
SINGLE_SIGN_ON = "(single sign-on)"
"""The person of entries about sign-ins at an identity provider before the account is known."""


class AuditAction(Enum):
    """AuditAction actions."""

    SIGN_IN = "sign-in"
    SIGN_IN_REFUSED = "sign-in refused"
    READ_TRANSCRIPT = "read transcript"
    READ_COUNSELLOR = "read counsellor"
    ASSIGN = "assign session"
    EXPORT = "export"
    CHANGE_ACCOUNT = "change account"
    ERASE = "erase"
    CHANGE_KEYS = "change keys"
    RECORD_CONSENT = "record consent"
    HOLD = "legal hold"
    SUBJECT_ACCESS = "subject access"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One entry of the audit trail."""

    at: datetime
    person: str
    action: str
    session_id: str | None
    detail: str | None


def record(
    store: Store,
    person: str,
    action: AuditAction,
    session_id: str | None = None,
    detail: str | None = None,
) -> None:
    """Write an entry; call it before showing the data, so that no access goes unrecorded."""
    record_all(store, person, action, [session_id], detail)


def record_all(
    store: Store,
    person: str,
    action: AuditAction,
    session_ids: Sequence[str | None],
    detail: str | None = None,
) -> None:
    """Write an entry for each of these sessions, in one transaction."""
    if not session_ids:
        return
    row = {
        "at": datetime.now(UTC),
        "person": person[:100],
        "action": action.value,
        "detail": detail[:500] if detail else None,
    }
    with store.transaction() as connection:
        rows = [{**row, "session_id": session_id} for session_id in session_ids]
        connection.execute(sa.insert(audit), rows)


def find(
    store: Store,
    *,
    session_id: str | None = None,
    person: str | None = None,
    action: AuditAction | None = None,
    cursor: str | None = None,
    limit: int = 100,
) -> Page[AuditEntry]:
    """A page of entries, newest first.

    Raises:
        BadCursor: the cursor belongs to another list.
    """
    query = sa.select(audit).order_by(audit.c.id.desc()).limit(limit + 1)
    for column, value in (
        (audit.c.session_id, session_id),
        (audit.c.person, person),
        (audit.c.action, action.value if action else None),
    ):
        if value is not None:
            query = query.where(column == value)
    if cursor is not None:
        [last_id] = decode_cursor(ORDER, cursor, [int])
        query = query.where(audit.c.id < last_id)
    with store.reading() as connection:
        found = connection.execute(query).mappings().all()
    more = len(found) > limit
    return Page(
        [_entry(row) for row in found[:limit]],
        encode_cursor(ORDER, [found[limit - 1]["id"]]) if more else None,
    )


def latest(store: Store, session_id: str | None = None, limit: int = 200) -> list[AuditEntry]:
    """The newest entries, of one session or of all sessions."""
    query = sa.select(audit).order_by(audit.c.id.desc()).limit(limit)
    if session_id is not None:
        query = query.where(audit.c.session_id == session_id)
    with store.reading() as connection:
        found = connection.execute(query).mappings().all()
    return [_entry(row) for row in found]


def _entry(row: sa.RowMapping) -> AuditEntry:
    return AuditEntry(row["at"], row["person"], row["action"], row["session_id"], row["detail"])
