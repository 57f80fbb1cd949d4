"""Idempotency keys: a program that repeats a request gets the same answer and the same numbers.

A key is stored with the numbers of its turns, in one transaction, before anything is sent to Kafka;
the answer is stored afterwards. If the process dies in between, the same request is sent again with
the same numbers, and the worker ignores the turns that it has already processed.

Only keyed digests of key and body are stored, and results without text. Keys expire after
``KEEP_FOR``, at the next daily purge.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.errors import RapportError
from stream_app.store.database.statements import insert_for
from stream_app.store.database.tables import ingest_keys
from stream_app.store.stream.repository import Store

KEEP_FOR: Final = timedelta(days=1)
BUSY_FOR: Final = timedelta(seconds=20)
"""Longer than sending takes. After that, a repeated request is sent again: harmless, see above."""

Results = list[dict[str, Any]]


class KeyReused(RapportError):
    """The key belongs to a request with another body."""

    def __init__(self) -> None:
        super().__init__(
            "this Idempotency-Key was used for a request with another body; take a new key"
        )


class KeyBusy(RapportError):
    """The first request with this key is still being handled; ``wait``: seconds until a retry."""

    def __init__(self, wait: float) -> None:
        super().__init__("the first request with this Idempotency-Key is in progress; try again")
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Request:
    """A request with a key. ``digest``: of sender and key; ``fingerprint``: of the body."""

    digest: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Known:
    """A request that was made before. ``answered``: its results are final."""

    results: Results
    answered: bool


def find(store: Store, connection: Connection, request: Request, now: datetime) -> Known | None:
    """What is known of this request; None if it is new. Marks it as in progress either way.

    A concurrent request with the same key waits for the caller's transaction.

    Raises:
        KeyReused: the key was used for another body.
        KeyBusy: the same request is in progress in this or another process.
    """
    table = ingest_keys
    busy_until = now + BUSY_FOR
    row = {
        "digest": request.digest,
        "fingerprint": request.fingerprint,
        "results": [],
        "busy_until": busy_until,
        "answered": False,
        "at": now,
    }
    new = insert_for(table, store.engine.dialect.name).values(row)
    insert = new.on_conflict_do_nothing(index_elements=["digest"])
    if connection.scalar(insert.returning(table.c.digest)) is not None:
        return None
    query = sa.select(table).where(table.c.digest == request.digest).with_for_update()
    found = connection.execute(query).one()
    if found.fingerprint != request.fingerprint:
        raise KeyReused
    if found.answered:
        return Known(found.results, answered=True)
    if found.busy_until is not None and found.busy_until > now:
        raise KeyBusy((found.busy_until - now).total_seconds())
    _update(connection, request, busy_until=busy_until)
    return Known(found.results, answered=False)


def plan(connection: Connection, request: Request, results: Results) -> None:
    """Store what will be sent, with the numbers of turns."""
    _update(connection, request, results=results)


def answer(store: Store, request: Request, results: Results) -> None:
    """Store the final results."""
    with store.transaction() as connection:
        _update(connection, request, results=results, answered=True, busy_until=None)


def release(store: Store, request: Request) -> None:
    """Let the request be repeated at once: the broker did not accept all events."""
    with store.transaction() as connection:
        _update(connection, request, busy_until=None)


def _update(connection: Connection, request: Request, **values: object) -> None:
    mine = ingest_keys.c.digest == request.digest
    connection.execute(sa.update(ingest_keys).where(mine).values(values))
