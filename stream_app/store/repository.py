"""Reads states, commits batches. Every write is idempotent: the same batch twice changes nothing.

The calls block; the worker runs them in a thread of its own.
"""

import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Engine

from stream_app.core.batch import BatchResult
from stream_app.core.ports import LogPosition, Message, OutboxEntry
from stream_app.core.session_state import Versioned
from stream_app.store import outbox as outbox_codec
from stream_app.store import tables
from stream_app.store.commit import Prepared, commit, prepare, rehearse
from stream_app.store.connection import Database, open_engine
from stream_app.store.privacy import Privacy
from stream_app.store.states import SessionStates

PSEUDONYM_KEY: Final = "pseudonym_key"
COOKIE_KEY: Final = "cookie_key"


class Store(Database):
    """The database, opened. Use ``open_store``."""

    def __init__(self, engine: Engine, now: Callable[[], datetime]) -> None:
        super().__init__(engine)
        self._now = now
        self.privacy = Privacy(key=b"", redact=True)
        self.redaction_took: Callable[[float], None] = lambda _: None
        self.states = SessionStates(self)

    def prepare(self, bundle: str, digest: str, manifest: dict[str, Any], redact: bool) -> None:
        """Register the bundle and read, or make, the installation's pseudonym key.

        Also looks up the primary keys that the tables have: those of partitioned tables hold the
        partition's column, too, and an upsert has to name them exactly.
        """
        with self.transaction() as connection:
            self.upsert(
                connection,
                tables.bundles,
                [
                    {
                        "bundle": bundle,
                        "digest": digest,
                        "manifest": manifest,
                        "first_used_at": self._now(),
                    }
                ],
                keep=True,
            )
        self.open_privacy(redact)
        self.read_keys()

    def open_privacy(self, redact: bool) -> None:
        """Read, or make, the installation's key, so that pseudonyms can be made."""
        self.privacy = Privacy(key=bytes.fromhex(self._key(PSEUDONYM_KEY)), redact=redact)

    def cookie_key(self) -> str:
        """The installation's secret that signs the console's cookies."""
        return self._key(COOKIE_KEY)

    def _key(self, name: str) -> str:
        """A secret of the installation, made at first use."""
        table = tables.installation
        with self.transaction() as connection:
            made = [{"name": name, "value": secrets.token_hex(32)}]
            self.upsert(connection, table, made, keep=True)
            found = connection.scalar(sa.select(table.c.value).where(table.c.name == name))
        return str(found)

    def load_states(self, session_ids: Sequence[str], bundle: str) -> dict[str, Versioned]:
        """The stored states of these sessions, in this order; unknown ones are left out."""
        return self.states.load(session_ids, bundle)

    def erased(self, session_ids: Sequence[str]) -> set[str]:
        """Those of some sessions that were erased: nothing of them is stored again."""
        digests = {self.privacy.pseudonym(session_id): session_id for session_id in session_ids}
        if not digests:
            return set()
        query = sa.select(tables.erasures.c.digest).where(tables.erasures.c.digest.in_(digests))
        with self.reading() as connection:
            return {digests[digest] for digest in connection.scalars(query)}

    def quiet_sessions(
        self, bundle: str, before: datetime, partitions: Sequence[int] | None, limit: int = 200
    ) -> dict[str, Versioned]:
        """Open sessions last heard of before ``before``, oldest first."""
        return self.states.quiet(bundle, before, partitions, limit)

    def due_sessions(
        self,
        bundle: str,
        due: datetime,
        active_since: datetime,
        partitions: Sequence[int],
        limit: int = 200,
    ) -> dict[str, Versioned]:
        """Open sessions with a time rule that is due by ``due``; the first due ones first."""
        return self.states.due(bundle, due, active_since, partitions, limit)

    def commit(
        self,
        result: BatchResult,
        messages: Sequence[Message] = (),
        positions: Sequence[LogPosition] = (),
    ) -> int | None:
        """Write a batch in one transaction; returns the id of its outbox row, if any.

        The versions in ``result.sessions`` move on when the transaction is through. ``positions``:
        up to where the log is in the database with it.

        Raises:
            StaleState: another worker moved one of the sessions on; nothing was written.
            StoreUnavailable: the database cannot be reached; the same call may be made again.
            RowRefused: a row has values that the database does not take.
            StoreError: the database refused the batch for another reason.
        """
        return commit(self, self.states, self._prepared(result), result, messages, positions)

    def rehearse(self, result: BatchResult, messages: Sequence[Message] = ()) -> None:
        """Write a batch and roll it back, to see whether the database takes one at all.

        Raises:
            StoreError: it does not.
        """
        rehearse(self, self.states, self._prepared(result), messages)

    def _prepared(self, result: BatchResult) -> Prepared:
        return prepare(self.privacy, self._now(), result, self.redaction_took)

    def outbox_ids(self, limit: int = 1000) -> list[int]:
        """Outbox rows whose messages are not out yet, oldest first."""
        query = sa.select(tables.outbox.c.id).order_by(tables.outbox.c.id).limit(limit)
        with self.reading() as connection:
            return list(connection.scalars(query))

    def outbox_entries(self, outbox_ids: Sequence[int]) -> list[OutboxEntry]:
        """These outbox rows, as far as they are still there, oldest first."""
        table = tables.outbox
        query = sa.select(table).where(table.c.id.in_(outbox_ids)).order_by(table.c.id)
        with self.reading() as connection:
            found = connection.execute(query).all()
        return [OutboxEntry(row.id, outbox_codec.unpack(row.messages)) for row in found]

    def sent(self, outbox_ids: Sequence[int]) -> None:
        """Delete outbox rows whose messages are out."""
        with self.transaction() as connection:
            connection.execute(sa.delete(tables.outbox).where(tables.outbox.c.id.in_(outbox_ids)))


def open_store(
    url: str,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    connections: int = 5,
) -> Store:
    """Open a database by its SQLAlchemy URL (``postgresql+psycopg://…`` or ``sqlite:///…``).

    Nothing is read yet: call ``Store.prepare`` before the first commit. ``connections``: how many
    are kept open between uses, on PostgreSQL.

    Raises:
        StoreError: the URL is not one of these two databases.
    """
    return Store(open_engine(url, connections), now)
