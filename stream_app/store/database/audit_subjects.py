"""Whom entries of the audit trail are about: sessions and counsellors, by commitments.

An entry holds no session id but a commitment to it: the SHA-256 of a random salt and the id. The
id and the salt are in a table of their own. So an erasure can remove them without changing the
trail, which is hash-chained, and nobody can give an entry another session unnoticed.
"""

import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.store.database.tables import audit, audit_subjects, erasures

SESSION: Final = "session"
COUNSELLOR: Final = "counsellor"
ERASED: Final = "erased:"
"""Prefix of the digest of an erased session."""
FORGOTTEN: Final = "(erased)"
"""Replaces the pseudonym of an erased counsellor."""
_table: Final = audit_subjects
_AT_A_TIME: Final = 500


def commitment(salt: str, kind: str, value: str) -> str:
    """The commitment to a session's id or a counsellor's pseudonym; ``salt`` in hexadecimal."""
    return hashlib.sha256(f"{salt}:{kind}:{value}".encode()).hexdigest()


def named(kind: sa.ColumnElement[str], value: sa.ColumnElement[str]) -> sa.Select[str]:
    """The statement for the commitment to a session or counsellor that is not erased."""
    return sa.select(_table.c.subject).where(
        _table.c.kind == kind, _table.c.value == value, _table.c.salt.is_not(None)
    )


def find_or_add(connection: Connection, kind: str, values: Sequence[str]) -> dict[str, str]:
    """The commitments of these sessions or counsellors, by value; call it with the head locked."""
    found: dict[str, str] = {}
    for some in _batches(values):
        query = sa.select(_table.c.value, _table.c.subject)
        named = _table.c.kind == kind, _table.c.value.in_(some), _table.c.salt.is_not(None)
        query = query.where(*named)
        found |= {row.value: row.subject for row in connection.execute(query)}
    new = []
    for value in dict.fromkeys(values):
        if value not in found:
            salt = secrets.token_hex(16)
            found[value] = commitment(salt, kind, value)
            new.append({"subject": found[value], "kind": kind, "value": value, "salt": salt})
    if new:
        connection.execute(sa.insert(_table), new)
    return found


def erase_session(connection: Connection, session_id: str, digest: str) -> int:
    """Replace a session's id by its keyed digest; return the number of entries about it."""
    named = (_table.c.kind == SESSION, _table.c.value == session_id)
    about = sa.select(_table.c.subject).where(*named)
    entries = sa.select(sa.func.count()).select_from(audit).where(audit.c.subject.in_(about))
    count = connection.scalar(entries) or 0
    connection.execute(sa.update(_table).where(*named).values(value=f"{ERASED}{digest}", salt=None))
    return count


def forget_counsellor(connection: Connection, pseudonym: str) -> None:
    """Remove a counsellor's pseudonym."""
    named = (_table.c.kind == COUNSELLOR, _table.c.value == pseudonym)
    connection.execute(sa.update(_table).where(*named).values(value=FORGOTTEN, salt=None))


def check(connection: Connection, entries: Mapping[str, int]) -> tuple[int, list[str]]:
    """Check the names of the subjects of these numbers of entries.

    Returns the number of subjects without a name, and descriptions of faults.
    """
    known = {row.subject: row for row in connection.execute(sa.select(_table))}
    digests = set(connection.scalars(sa.select(erasures.c.digest)))
    faults, unnamed = [], 0
    for subject, count in entries.items():
        row = known.get(subject)
        if row is None:
            faults.append(f"{count} entries are about a subject whose row was removed")
        elif row.salt is None:
            unnamed += 1
            digest = row.value.removeprefix(ERASED)
            if row.kind == SESSION and digest not in digests:
                faults.append(f"{count} entries are about a session that was never erased")
        elif commitment(row.salt, row.kind, row.value) != subject:
            faults.append(f"{count} entries were assigned to another {row.kind}")
    return unnamed, faults


def _batches(values: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(values), _AT_A_TIME):
        yield values[first : first + _AT_A_TIME]
