"""The hash chain of the audit trail: appends entries, and finds changes made around Rapport.

The hash of an entry covers its content and the hash before it. So an entry that was changed,
removed, inserted or moved does not fit its neighbours. The newest entry, which has no successor, is
also recorded in the table ``installation``.

Somebody who may write all tables could compute a new chain from some entry on, or remove the newest
entries together with their record. Only a copy of the head that is kept elsewhere reveals this.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Any, Final

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection

from stream_app.errors import RapportError
from stream_app.store.database import audit_subjects
from stream_app.store.database.connection import Database
from stream_app.store.database.tables import audit, installation

HEAD: Final = "audit-head"
"""Name of the head's record in ``installation``."""
ORIGIN: Final = "0" * 64
"""The hash before the first entry."""
MAX_FAULTS: Final = 20
ERASE: Final = "erase"
WORKER: Final = "(worker)"
"""Action and person of entries that are written with a batch; see ``store.audit``."""
_HEAD: Final = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")
_ROWS_AT_A_TIME: Final = 1000
_RECORDED: Final = sa.select(installation.c.value).where(installation.c.name == HEAD)
_HEAD_AND_SUBJECT: Final = sa.select(
    _RECORDED.scalar_subquery(),
    audit_subjects.named(sa.bindparam("kind"), sa.bindparam("value")).scalar_subquery(),
)
_MOVED: Final = (
    sa.update(installation)
    .where(installation.c.name == HEAD, installation.c.value == sa.bindparam("known"))
    .values(value=sa.bindparam("head"))
    .returning(installation.c.name)
    .cte("moved")
)
_APPEND_AFTER: Final = sa.insert(audit).from_select(
    [column.name for column in audit.c],
    sa.select(
        *(sa.bindparam(f"new_{column.name}", type_=column.type) for column in audit.c)
    ).select_from(_MOVED),
)


class Head(Struct, frozen=True):
    """The newest entry: its id and hash."""

    entry: int
    hash: str

    def __str__(self) -> str:
        return f"{self.entry}:{self.hash}"


class Verification(Struct, frozen=True):
    """Result of a check. ``faults``: descriptions of the first of them; empty if intact.

    ``unnamed``: sessions and counsellors whose names were erased or replaced.
    """

    entries: int
    head: Head
    unnamed: int
    faults: list[str]


def parse_head(text: str) -> Head:
    """Parse a head as printed.

    Raises:
        RapportError: it is not of this form.
    """
    match = _HEAD.fullmatch(text.strip())
    if match is None:
        raise RapportError("a head has the form ID:HASH, as `rapport audit verify` prints it")
    return Head(int(match[1]), match[2])


def hash_of(previous: str, row: dict[str, Any]) -> str:
    """The hash of an entry after ``previous``. Migration 0048 has a copy of this function."""
    content = [
        previous,
        row["id"],
        row["at"].astimezone(UTC).isoformat(timespec="microseconds"),
        row["person"],
        row["action"],
        row["subject"],
        row["detail"],
    ]
    return hashlib.sha256(json.dumps(content, ensure_ascii=True).encode()).hexdigest()


class Chain:
    """The chain while its head is locked."""

    def __init__(self, connection: Connection, head: Head) -> None:
        self._connection = connection
        self._head = head

    def append(self, rows: Sequence[dict[str, Any]]) -> None:
        """Add entries (without ``id`` and ``hash``) at the end."""
        chained, head = [], self._head
        for row in rows:
            entry = {**row, "id": head.entry + 1}
            head = Head(entry["id"], hash_of(head.hash, entry))
            chained.append({**entry, "hash": head.hash})
        self._connection.execute(sa.insert(audit), chained)
        record = sa.update(installation).where(installation.c.name == HEAD)
        self._connection.execute(record.values(value=str(head)))
        self._head = head


def locked(store: Database, connection: Connection) -> Chain:
    """Lock the head's record until the transaction ends, so that writers take turns.

    On SQLite, a writing transaction excludes others anyway.
    """
    head = _recorded_head(connection, lock=True)
    if head is None:  # the record was deleted: go on after the newest entry
        newest = sa.select(audit.c.id, audit.c.hash).order_by(audit.c.id.desc()).limit(1)
        row = connection.execute(newest).first()
        head = Head(row.id, row.hash) if row else Head(0, ORIGIN)
        made = [{"name": HEAD, "value": str(head)}]
        store.upsert(connection, installation, made, keep=False)
    return Chain(connection, head)


def head_and_subject(
    connection: Connection, kind: str, value: str
) -> tuple[Head | None, str | None]:
    """The recorded head, not locked, and the commitment to a session or counsellor, if any."""
    given = {"kind": kind, "value": value}
    recorded, subject = connection.execute(_HEAD_AND_SUBJECT, given).one()
    return _parsed(recorded), subject


def append_after(connection: Connection, head: Head, row: dict[str, Any]) -> bool:
    """Add an entry by a single statement, if the recorded head is still this one.

    PostgreSQL only. No other writer waits while this one computes the hash.
    """
    entry = {**row, "id": head.entry + 1}
    added = Head(entry["id"], hash_of(head.hash, entry))
    new = {f"new_{name}": value for name, value in {**entry, "hash": added.hash}.items()}
    options = {"preserve_rowcount": True}
    given = {**new, "known": str(head), "head": str(added)}
    return connection.execute(_APPEND_AFTER, given, execution_options=options).rowcount == 1


def verify(store: Database, known: Head | None = None) -> Verification:
    """Check the whole chain, and that it still contains the head ``known`` from an earlier check.

    Reads one snapshot of the database; new entries do not disturb it.
    """
    options = (
        {"isolation_level": "REPEATABLE READ"} if store.engine.dialect.name == "postgresql" else {}
    )
    faults: list[str] = []
    with store.reading(**options) as connection:
        recorded = _recorded_head(connection)
        last, entries, known_hash, subjects = Head(0, ORIGIN), 0, None, Counter[str]()
        for row in _rows(connection):
            expected = hash_of(last.hash, row)
            if row["hash"] != expected:
                faults.append(
                    f"entry {row['id']} does not fit entry {last.entry} before it: it was changed, "
                    "or entries were removed, inserted or moved there"
                )
            last, entries = Head(row["id"], row["hash"]), entries + 1
            if known is not None and last.entry == known.entry:
                known_hash = last.hash
            if row["subject"] is not None:
                subjects[row["subject"]] += 1
        if recorded != last:
            faults.append(
                f"the newest entry is {last.entry}, but entry "
                f"{recorded.entry if recorded else '(none)'} is recorded as the newest: entries "
                "were removed or added at the end"
            )
        if known is not None and known_hash != known.hash:
            what = "is missing" if known_hash is None else "has another hash"
            faults.append(
                f"entry {known.entry} of the given head {what}: the trail was cut or rewritten"
            )
        unnamed, wrong = audit_subjects.check(connection, subjects)
    return Verification(entries, last, unnamed, [*faults, *wrong][:MAX_FAULTS])


def _rows(connection: Connection) -> Iterator[dict[str, Any]]:
    last = -1
    while True:
        query = sa.select(audit).where(audit.c.id > last).order_by(audit.c.id)
        found = connection.execute(query.limit(_ROWS_AT_A_TIME)).mappings().all()
        if not found:
            return
        yield from (dict(row) for row in found)
        last = found[-1]["id"]


def _recorded_head(connection: Connection, *, lock: bool = False) -> Head | None:
    return _parsed(connection.scalar(_RECORDED.with_for_update() if lock else _RECORDED))


def _parsed(recorded: str | None) -> Head | None:
    match = _HEAD.fullmatch(recorded or "")
    return Head(int(match[1]), match[2]) if match else None
