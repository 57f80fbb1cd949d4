"""The audit trail: who read what, refused attempts, and administrative actions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

import sqlalchemy as sa

from stream_app.store.database import audit_chain, audit_subjects, tables
from stream_app.store.database.audit_subjects import COUNSELLOR, SESSION
from stream_app.store.database.operator import operator
from stream_app.store.database.pages import Page, decode_cursor, encode_cursor
from stream_app.store.database.tables import audit
from stream_app.store.stream.repository import Store

ORDER = "audit"
UNLOCKED_TRIES: Final = 3
"""Tries before the head is locked, so that a writer gets its turn among many."""
_table = tables.audit_subjects
_QUERY = (
    sa.select(audit, _table.c.kind, _table.c.value)
    .outerjoin(_table, _table.c.subject == audit.c.subject)
    .order_by(audit.c.id.desc())
)
COMMAND_LINE = operator()
"""The person of entries written by commands, which run without sign-in."""
WORKER = audit_chain.WORKER
SINGLE_SIGN_ON = "(single sign-on)"
"""The person of entries about sign-ins at an identity provider before the account is known."""


class AuditAction(Enum):
    """AuditAction actions."""

    SIGN_IN = "sign-in"
    SIGN_IN_REFUSED = "sign-in refused"
    READ_TRANSCRIPT = "read transcript"
    READ_COUNSELLOR = "read counsellor"
    READ_SCORES = "read scores"
    READ_ALERTS = "read alerts"
    READ_AUDIT = "read audit"
    READ_STATISTICS = "read statistics"
    READ_RECORDS = "read records"
    REFUSED = "refused"
    ASSIGN = "assign session"
    INTERVENE = "intervene"
    EXPORT = "export"
    CHANGE_ACCOUNT = "change account"
    GRANT_READING = "grant reading"
    CHANGE_RULES = "change rules"
    CHANGE_BUNDLE = "change bundle"
    ACKNOWLEDGE_DRIFT = "acknowledge drift"
    ERASE = audit_chain.ERASE
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
    *,
    counsellor: str | None = None,
) -> None:
    """Write an entry; call it before showing the data, so that no access goes unrecorded.

    ``counsellor``: the pseudonym of whom it is about, instead of a session.
    """
    if counsellor is not None:
        _append(store, person, action, COUNSELLOR, [counsellor], detail)
    else:
        record_all(store, person, action, [session_id], detail)


def record_all(
    store: Store,
    person: str,
    action: AuditAction,
    session_ids: Sequence[str | None],
    detail: str | None = None,
) -> None:
    """Write an entry for each of these sessions, in one transaction."""
    _append(store, person, action, SESSION, session_ids, detail)


def _append(
    store: Store,
    person: str,
    action: AuditAction,
    kind: str,
    about: Sequence[str | None],
    detail: str | None,
) -> None:
    if not about:
        return

    def entry(subject: str | None) -> dict[str, Any]:
        return {
            "at": datetime.now(UTC),
            "person": person[:100],
            "action": action.value,
            "subject": subject,
            "detail": detail[:500] if detail else None,
        }

    if len(about) == 1 and _append_unlocked(store, kind, about[0], entry):
        return
    with store.transaction() as connection:
        chain = audit_chain.locked(store, connection)
        named = [value for value in about if value is not None]
        subjects = audit_subjects.find_or_add(connection, kind, named)
        chain.append([entry(None if value is None else subjects[value]) for value in about])


def _append_unlocked(
    store: Store, kind: str, value: str | None, entry: Callable[[str | None], dict[str, Any]]
) -> bool:
    """Append one entry about a known subject without holding the head's lock.

    A page waits for it, and a lock would be held for as long as the web process waits for the CPU
    between its statements. False if other writers were faster, the subject is new, or on SQLite.
    """
    if store.engine.dialect.name == "sqlite":
        return False
    with store.single_statement() as connection:
        for _ in range(UNLOCKED_TRIES):
            head, subject = audit_chain.head_and_subject(connection, kind, value or "")
            if head is None or (value is not None and subject is None):
                return False
            if audit_chain.append_after(connection, head, entry(subject)):
                return True
    return False


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
    query = _QUERY.limit(limit + 1)
    if session_id is not None:
        query = query.where(_table.c.kind == SESSION, _table.c.value == session_id)
    if person is not None:
        query = query.where(audit.c.person == person)
    if action is not None:
        query = query.where(audit.c.action == action.value)
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


def since(store: Store, action: AuditAction, moment: datetime) -> list[AuditEntry]:
    """The entries of an action since then, newest first."""
    query = _QUERY.where(audit.c.action == action.value, audit.c.at >= moment)
    with store.reading() as connection:
        return [_entry(row) for row in connection.execute(query).mappings()]


def latest(store: Store, session_id: str | None = None, limit: int = 200) -> list[AuditEntry]:
    """The newest entries, of one session or of all sessions."""
    return find(store, session_id=session_id, limit=limit).items


def _entry(row: sa.RowMapping) -> AuditEntry:
    session = row["value"] if row["kind"] == SESSION else None
    detail = f"counsellor {row['value']}" if row["kind"] == COUNSELLOR else row["detail"]
    return AuditEntry(row["at"], row["person"], row["action"], session, detail)
