"""The store: reads states and commits batches. Every write is idempotent.

The calls block; the worker runs them in a separate thread.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from secrets import token_hex
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Engine

from stream_app.core.session.batch import BatchResult
from stream_app.core.session.origin import Origin
from stream_app.core.session.past import PastSession
from stream_app.core.session.ports import LogPosition, Message, OutboxEntry
from stream_app.core.session.session_state import Versioned
from stream_app.redaction.port import Redactor
from stream_app.redaction.rules import Rules
from stream_app.sealing.sources import KeySource
from stream_app.store.database import tables
from stream_app.store.database.connection import Database, open_engine
from stream_app.store.database.privacy import Privacy
from stream_app.store.database.secrets import Secrets, secrets_of
from stream_app.store.keys import pseudonym_key
from stream_app.store.keys.session_keys import SessionKeys
from stream_app.store.stream import outbox as outbox_codec
from stream_app.store.stream import past_sessions, withdrawal
from stream_app.store.stream.commit import Prepared, commit, dry_run, prepare
from stream_app.store.stream.states import SessionStates
from stream_app.store.stream.stored_positions import StoredPositions

COOKIE_KEY: Final = "cookie_key"


class Store(Database):
    """An open database. Create it with ``open_store``."""

    def __init__(
        self, engine: Engine, now: Callable[[], datetime] | None, secrets: Secrets
    ) -> None:
        super().__init__(engine)
        self._now = now or self.clock
        self.privacy = Privacy(key=b"", redact=True)
        self.redactor: Redactor = Rules()
        self.hide_withdrawn = True
        self.observe_redaction: Callable[[float], None] = lambda _: None
        self.secrets = secrets
        self.keys = SessionKeys(self, secrets.master)
        self.states = SessionStates(self, self.keys)
        self.positions = StoredPositions(self)

    def prepare(self, bundle: str, digest: str, manifest: dict[str, Any], redact: bool) -> None:
        """Register the bundle and load what commits need: keys and primary keys."""
        self.register_bundle(bundle, digest, manifest)
        self.load_privacy(redact)
        self.load_primary_keys()

    def register_bundle(self, bundle: str, digest: str, manifest: dict[str, Any]) -> str:
        """Store the manifest of a bundle that is going to score, unless its id is known.

        Returns the digest that is registered for this id.
        """
        row = {
            "bundle": bundle,
            "digest": digest,
            "manifest": manifest,
            "first_used_at": self._now(),
        }
        query = sa.select(tables.bundles.c.digest).where(tables.bundles.c.bundle == bundle)
        with self.transaction() as connection:
            self.upsert(connection, tables.bundles, [row], keep=True)
            return str(connection.scalar(query))

    def load_privacy(self, redact: bool) -> None:
        """Load the installation's keys, for pseudonyms and for encryption.

        Raises:
            SealingError: one is missing, or is not the one of this database.
        """
        self.keys.check()
        first, *later = pseudonym_key.read(self, self.secrets.pseudonym)
        self.privacy = Privacy(
            key=first,
            redact=redact,
            later=tuple(later),
            redactor=self.redactor,
            hide_withdrawn=self.hide_withdrawn,
        )

    def cookie_key(self) -> str:
        """The secret key that signs the console's cookies."""
        return self._secret(COOKIE_KEY)

    def _secret(self, name: str) -> str:
        """A secret of the installation, created at first use."""
        table = tables.installation
        with self.transaction() as connection:
            new = [{"name": name, "value": token_hex(32)}]
            self.upsert(connection, table, new, keep=True)
            found = connection.scalar(sa.select(table.c.value).where(table.c.name == name))
        return str(found)

    def load_states(self, session_ids: Sequence[str], bundle: str) -> dict[str, Versioned]:
        """The stored states of these sessions, in this order; unknown ones are left out."""
        return self.states.load(session_ids, bundle)

    def find_erased(self, session_ids: Sequence[str]) -> set[str]:
        """The subset of ``session_ids`` that was erased and must not be stored again."""
        digests = {self.privacy.pseudonym(session_id): session_id for session_id in session_ids}
        if not digests:
            return set()
        query = sa.select(tables.erasures.c.digest).where(tables.erasures.c.digest.in_(digests))
        with self.reading() as connection:
            return {digests[digest] for digest in connection.scalars(query)}

    def find_withdrawn(self, session_ids: Sequence[str]) -> dict[str, str | None]:
        """Find those whose consent was withdrawn, with the newest wording's version.

        Needed for sessions without a state under this bundle.
        """
        return withdrawal.find_withdrawn(self, session_ids)

    def find_begun(self, session_ids: Sequence[str]) -> dict[str, Origin]:
        """Find those of these sessions that have a turn, with what their turns state."""
        if not session_ids:
            return {}
        table = tables.sessions
        columns = [table.c[name] for name in Origin.__struct_fields__]
        query = sa.select(table.c.session_id, *columns).where(
            table.c.session_id.in_(session_ids), table.c.started_at.is_not(None)
        )
        with self.reading() as connection:
            return {key: Origin(*stated) for key, *stated in connection.execute(query)}

    def past_session(self, session_id: str) -> PastSession:
        """The stored turns of a session with their texts and scores."""
        return past_sessions.read(self, self.keys, session_id)

    def erasures_since(self, moment: datetime) -> bool:
        """Whether any session was erased since then, by the clock of the erasing machine."""
        query = sa.select(tables.erasures.c.digest).where(tables.erasures.c.at >= moment).limit(1)
        with self.reading() as connection:
            return connection.scalar(query) is not None

    def idle_sessions(
        self, bundle: str, before: datetime, partitions: Sequence[int] | None, limit: int = 200
    ) -> dict[str, Versioned]:
        """Open sessions without an event since ``before``, least recent first."""
        return self.states.idle(bundle, before, partitions, limit)

    def due_sessions(
        self,
        bundle: str,
        due: datetime,
        active_since: datetime,
        partitions: Sequence[int],
        limit: int = 200,
    ) -> dict[str, Versioned]:
        """Open sessions with a timed rule due by ``due``, earliest first."""
        return self.states.due(bundle, due, active_since, partitions, limit)

    def commit(
        self,
        result: BatchResult,
        messages: Sequence[Message] = (),
        positions: Sequence[LogPosition] = (),
        published: Sequence[int] = (),
    ) -> int | None:
        """Write a batch in one transaction; return the id of its outbox row, if any.

        The versions in ``result.sessions`` are incremented after the transaction. ``positions``:
        the consumer group's offsets after this batch, written with it. ``published``: outbox rows
        whose messages are published, deleted with it.

        Raises:
            StaleState: another worker has updated one of the sessions; nothing was written.
            DatabaseWentBack: the database lacks events that it contained; nothing was written.
            StoreUnavailable: the database cannot be reached; the call can be repeated.
            RowRefused: the database rejected values of a row.
            StoreError: the database rejected the batch for another reason.
        """
        prepared = self._prepared(result)
        return commit(
            self,
            self.states,
            self.keys,
            self.positions,
            prepared,
            result,
            messages,
            positions,
            published,
        )

    def check_positions(self, positions: Sequence[LogPosition]) -> None:
        """Check that the database contains the events up to these positions' ``stored``.

        Raises:
            DatabaseWentBack: it lacks some.
        """
        with self.reading() as connection:
            self.positions.check(connection, positions)

    def dry_run(self, result: BatchResult, messages: Sequence[Message] = ()) -> None:
        """Write a batch and roll it back, to test whether the database accepts it.

        Raises:
            StoreError: as ``commit``.
        """
        dry_run(self, self.states, self.keys, self._prepared(result), messages)

    def _prepared(self, result: BatchResult) -> Prepared:
        without = [name for name, versioned in result.sessions.items() if not versioned.key]
        stored: dict[str, bytes] = {}
        if without:  # another bundle, or a purged state, may have left one
            with self.reading() as connection:
                stored = self.keys.load(connection, without)
        return prepare(self.privacy, self.keys, stored, self._now(), result, self.observe_redaction)

    def outbox_ids(self, limit: int = 1000) -> list[int]:
        """Ids of unpublished outbox rows, oldest first."""
        query = sa.select(tables.outbox.c.id).order_by(tables.outbox.c.id).limit(limit)
        with self.reading() as connection:
            return list(connection.scalars(query))

    def outbox_entries(self, outbox_ids: Sequence[int]) -> list[OutboxEntry]:
        """These outbox rows, oldest first; missing ones are left out."""
        table = tables.outbox
        query = sa.select(table).where(table.c.id.in_(outbox_ids)).order_by(table.c.id)
        with self.reading() as connection:
            found = connection.execute(query).all()
        return [OutboxEntry(row.id, outbox_codec.unpack(row.messages)) for row in found]

    def delete_outbox_entries(self, outbox_ids: Sequence[int]) -> None:
        """Delete outbox rows after their messages were published."""
        if outbox_ids:
            with self.transaction() as connection:
                outbox_codec.delete(connection, outbox_ids, self.engine.dialect.name)


def open_store(
    url: str,
    now: Callable[[], datetime] | None = None,
    connections: int = 5,
    overflow: int = 10,
    master: KeySource | None = None,
    pseudonym: KeySource | None = None,
    *,
    prepare: bool = True,
    create: bool = True,
) -> Store:
    """Open a database by its SQLAlchemy URL (``postgresql+psycopg://…`` or ``sqlite:///…``).

    Does not connect yet: call ``Store.prepare`` before the first commit. ``connections``: kept open
    on PostgreSQL; ``overflow``: further ones, which are closed after use. ``now``: dates what is
    stored; by default the database's clock. ``prepare``, ``create``: see ``open_engine``.
    ``master``, ``pseudonym``: keys outside the database; by default in files next to an SQLite
    database.

    Raises:
        StoreError: the URL is invalid, or neither SQLite nor PostgreSQL.
    """
    engine = open_engine(url, connections, overflow, prepare=prepare, create=create)
    return Store(engine, now, secrets_of(engine.url, master, pseudonym))
