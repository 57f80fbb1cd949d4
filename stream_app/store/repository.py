"""Reads states, commits batches. Every write is idempotent: the same batch twice changes nothing.

The calls block; the worker runs them in a thread of its own.
"""

import secrets
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import sqlalchemy as sa
import structlog
from msgspec import Struct
from sqlalchemy import URL, Connection, Engine, Table, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    NoSuchTableError,
    OperationalError,
    ProgrammingError,
    StatementError,
)

from stream_app.contracts.scores import SessionStatus
from stream_app.core.batch import BatchResult, StoredTurn
from stream_app.core.ports import LogPosition, Message, OutboxEntry
from stream_app.core.session_state import Versioned
from stream_app.errors import RowRefused, StaleState, StoreError, StoreUnavailable
from stream_app.store import outbox as outbox_codec
from stream_app.store import rows, tables, windows
from stream_app.store.privacy import Privacy
from stream_app.store.rows import Row
from stream_app.store.statements import Statement, as_json

log = structlog.get_logger(__name__)

READS_ONLY: Final = "rapport_reads_only"
SQLITE_CACHE_KIB: Final = 16 * 1024
SQLITE_LOG_PAGES: Final = 4000
PSEUDONYM_KEY: Final = "pseudonym_key"
COOKIE_KEY: Final = "cookie_key"
SCHEMA_MISSING: Final = "the database has no Rapport tables (or old ones): run `rapport db upgrade`"
_DRIVERS: Final = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg"}
_UNDEFINED: Final = ("42P01", "42703")  # PostgreSQL: undefined table, undefined column
_OF_VALUES: Final = ("22", "23", "54")
"""Classes of PostgreSQL's SQLSTATE: data exceptions, constraints, limits of a row or an index."""
_INSERTS: Final[dict[str, Callable[[Table], Any]]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}


class _Prepared(Struct, frozen=True):
    """The rows of a batch: ``tables`` with whether known rows are kept.

    ``slots``: where the turns of each session's window are stored. ``speakers``: those not known.
    """

    now: datetime
    states: list[Row]
    slots: dict[str, windows.Slots]
    speakers: list[Row]
    tables: list[tuple[Table, list[Row], bool]]


class _TakenBack(Exception):
    """Ends a rehearsal."""


class Store:
    """The database, opened. Use ``open_store``."""

    def __init__(self, engine: Engine, now: Callable[[], datetime]) -> None:
        self.engine = engine
        self._now = now
        self._insert = _INSERTS[engine.dialect.name]
        self.privacy = Privacy(key=b"", redact=True)
        self.redaction_took: Callable[[float], None] = lambda _: None
        self._keys = {
            name: [column.name for column in table.primary_key]
            for name, table in tables.metadata.tables.items()
        }
        self._upserts: dict[tuple[str, tuple[str, ...], bool], Statement] = {}
        self._new_states = self._states_insert()
        self._known_states = self._states_update()

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
        with self._inspected() as inspector:
            for name in self._keys:
                self._keys[name] = inspector.get_pk_constraint(name)["constrained_columns"]
        self._upserts.clear()

    def check_schema(self) -> None:
        """See whether the database has every table and column of this release.

        Raises:
            StoreError: it lacks some; says which, and what to run.
        """
        missing = []
        with self._inspected() as inspector:
            there = set(inspector.get_table_names())
            for name, table in tables.metadata.tables.items():
                if name not in there:
                    missing.append(name)
                    continue
                columns = {column["name"] for column in inspector.get_columns(name)}
                missing += [
                    f"{name}.{column.name}" for column in table.c if column.name not in columns
                ]
        if missing:
            raise StoreError(f"{SCHEMA_MISSING}; missing: {', '.join(missing[:5])}")

    @contextmanager
    def _inspected(self) -> Iterator[sa.Inspector]:
        with self.reading() as connection:
            try:
                yield sa.inspect(connection)
            except NoSuchTableError:
                raise StoreError(SCHEMA_MISSING) from None

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
        if not session_ids:
            return {}
        states, turns = tables.session_states, tables.window_turns
        columns = states.c.session_id, sa.null(), states.c.version, states.c.partition
        nothing = sa.null(), sa.null(), sa.null()
        both = sa.union_all(  # one statement: what it sees is of one moment
            sa.select(*columns, states.c.seen_at, states.c.state).where(
                states.c.bundle == bundle, states.c.session_id.in_(session_ids)
            ),
            sa.select(turns.c.session_id, turns.c.slot, *nothing, turns.c.turn).where(
                turns.c.bundle == bundle, turns.c.session_id.in_(session_ids)
            ),
        )
        found: dict[str, tuple[bytes, int, int, datetime | None]] = {}
        lying: defaultdict[str, dict[int, bytes]] = defaultdict(dict)
        with self.reading() as connection:
            for session_id, slot, version, partition, seen_at, raw in connection.execute(both):
                if slot is None:
                    found[session_id] = raw, version, partition, seen_at
                else:
                    lying[session_id][slot] = raw
        known: dict[str, Versioned] = {}
        for session_id in filter(found.__contains__, session_ids):
            raw, version, partition, seen_at = found[session_id]
            state, slots = windows.join_state(raw, lying[session_id])
            known[session_id] = Versioned(state, version, partition, slots, seen_at=seen_at)
        return known

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
        """Open sessions that were last heard of before ``before``, oldest first."""
        table = tables.session_states
        query = (
            sa.select(table.c.session_id)
            .where(
                table.c.bundle == bundle,
                table.c.status == SessionStatus.OPEN.value,
                table.c.seen_at < before,
            )
            .order_by(table.c.seen_at)
            .limit(limit)
        )
        if partitions is not None:
            query = query.where(table.c.partition.in_(partitions))
        return self._found(query, bundle)

    def due_sessions(
        self,
        bundle: str,
        due: datetime,
        active_since: datetime,
        partitions: Sequence[int],
        limit: int = 200,
    ) -> dict[str, Versioned]:
        """Open sessions with a rule of time that is due by ``due``; the first due ones first.

        By the service's clock, and only of live sessions: heard of at ``active_since`` or later,
        and with a turn of that time. What is older is a recording.
        """
        table = tables.session_states
        query = (
            sa.select(table.c.session_id)
            .where(
                table.c.bundle == bundle,
                table.c.wake_at <= due,
                table.c.status == SessionStatus.OPEN.value,
                table.c.seen_at >= active_since,
                table.c.last_activity_at >= active_since,
                table.c.partition.in_(partitions),
            )
            .order_by(table.c.wake_at)
            .limit(limit)
        )
        return self._found(query, bundle)

    def commit(
        self,
        result: BatchResult,
        messages: Sequence[Message] = (),
        positions: Sequence[LogPosition] = (),
    ) -> int | None:
        """Write a batch in one transaction; returns the id of its outbox row, if any.

        ``positions``: up to where the log is in the database with it.
        The versions in ``result.sessions`` move on when the transaction is through.

        Raises:
            StaleState: another worker moved one of the sessions on; nothing was written.
            StoreUnavailable: the database cannot be reached; the same call may be made again.
            RowRefused: a row has values that the database does not take.
            StoreError: the database refused the batch for another reason.
        """
        rows_of = self._prepared(result)
        with self.transaction() as connection:
            outbox_id = self._write(connection, rows_of, messages)
            read_to = [rows.position_row(position, rows_of.now) for position in positions]
            self.upsert(connection, tables.log_positions, read_to, keep=False)
        for session_id, versioned in result.sessions.items():
            versioned.version += 1
            versioned.slots = rows_of.slots[session_id]
        for row in rows_of.speakers:
            result.sessions[row["session_id"]].speakers.add(_speaker(row))
        return outbox_id

    def rehearse(self, result: BatchResult, messages: Sequence[Message] = ()) -> None:
        """Write a batch and take it back, to see whether the database takes one at all.

        Raises:
            StoreError: it does not.
        """
        rows_of = self._prepared(result)
        with suppress(_TakenBack), self.transaction() as connection:
            self._write(connection, rows_of, messages)
            raise _TakenBack

    def _prepared(self, result: BatchResult) -> "_Prepared":
        """The rows of a batch; made before there is a transaction that would wait for them."""
        now = self._now()
        for versioned in result.sessions.values():
            versioned.seen_at = versioned.seen_at or now
        statuses = {score.session_id: score.status for score in result.session_scores}
        sessions = result.sessions
        split = {session_id: windows.split_state(v) for session_id, v in sessions.items()}
        turns = [self._turn_row(turn, now) for turn in result.turns]
        speakers = [
            rows.speaker_row(turn)
            for turn in turns
            if _speaker(turn) not in sessions[turn["session_id"]].speakers
        ]
        held = [row for item in split.values() for row in item.turns]
        facts = [rows.session_row(versioned.state, now) for versioned in sessions.values()]
        turn_scores = [rows.turn_score_row(score) for score in result.turn_scores]
        session_scores = [rows.session_score_row(score) for score in result.session_scores]
        return _Prepared(
            now=now,
            states=[
                rows.state_row(versioned, statuses[key], split[key].state)
                for key, versioned in sessions.items()
            ],
            slots={session_id: item.slots for session_id, item in split.items()},
            speakers=speakers,
            tables=[
                (tables.window_turns, held, False),
                (tables.sessions, facts, False),
                (tables.turns, turns, True),
                (tables.session_speakers, speakers, True),
                (tables.turn_scores, turn_scores, False),
                (tables.session_scores, session_scores, False),
                (tables.alerts, [rows.alert_row(alert) for alert in result.alerts], True),
                (
                    tables.outcomes,
                    [rows.outcome_row(outcome) for outcome in result.outcomes],
                    False,
                ),
            ],
        )

    def _write(
        self, connection: Connection, rows_of: "_Prepared", messages: Sequence[Message]
    ) -> int | None:
        self._write_states(connection, rows_of.states)
        for table, values, keep in rows_of.tables:
            self.upsert(connection, table, values, keep=keep)
        return self._write_outbox(connection, messages, rows_of.now)

    def _turn_row(self, turn: StoredTurn, now: datetime) -> Row:
        began = time.perf_counter()
        row = rows.turn_row(turn, self.privacy, now)
        self.redaction_took(time.perf_counter() - began)
        return row

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

    def ping(self) -> None:
        """Raise StoreUnavailable if the database does not answer."""
        with self.reading() as connection:
            connection.execute(sa.text("SELECT 1"))

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _found(self, query: sa.Select[Any], bundle: str) -> dict[str, Versioned]:
        with self.reading() as connection:
            session_ids = list(connection.scalars(query))
        return self.load_states(session_ids, bundle)

    def _write_states(self, connection: Connection, values: list[Row]) -> None:
        """Compare and swap on ``version``, so that a zombie cannot overwrite newer state."""
        new = [row for row in values if row["was"] == 0]
        known = [row for row in values if row["was"]]
        written = self._new_states.run(connection, new) if new else 0
        written += self._known_states.run(connection, known) if known else 0
        if written != len(values):
            raise StaleState(
                f"{len(values) - written} of {len(values)} sessions were moved on by another worker"
            )

    def _states_insert(self) -> Statement:
        table = tables.session_states
        insert = self._insert(table).values({c.name: sa.bindparam(c.name) for c in table.c})
        return Statement(insert.on_conflict_do_nothing(), table, self.engine.dialect.name)

    def _states_update(self) -> Statement:
        table = tables.session_states
        keys = {"session_id", "bundle"}
        update = (
            sa.update(table)
            .where(
                *(table.c[key] == sa.bindparam(f"b_{key}") for key in sorted(keys)),
                table.c.version == sa.bindparam("b_was"),
            )
            .values({c.name: sa.bindparam(f"b_{c.name}") for c in table.c if c.name not in keys})
        )
        return Statement(update, table, self.engine.dialect.name, prefix="b_")

    def _write_outbox(
        self, connection: Connection, messages: Sequence[Message], now: datetime
    ) -> int | None:
        if not messages:
            return None
        row = {"created_at": now, "messages": outbox_codec.pack(list(messages))}
        inserted = connection.execute(sa.insert(tables.outbox).values(row))
        key = inserted.inserted_primary_key
        return int(key[0]) if key is not None else None

    def upsert(
        self, connection: Connection, table: Table, values: list[Row], *, keep: bool
    ) -> None:
        """Insert rows; on a known key ``keep`` the old row, or replace it."""
        if not values:
            return
        key = (table.name, tuple(values[0]), keep)
        statement = self._upserts.get(key)
        if statement is None:
            statement = self._upserts[key] = self._upsert(table, key[1], keep=keep)
        statement.run(connection, values)

    def _upsert(self, table: Table, names: Sequence[str], *, keep: bool) -> Statement:
        insert = self._insert(table).values({name: sa.bindparam(name) for name in names})
        keys = self._keys[table.name]
        if keep:
            upsert = insert.on_conflict_do_nothing(index_elements=keys)
        else:
            changed = {
                column.name: insert.excluded[column.name]
                for column in table.c
                if column.name not in keys
            }
            upsert = insert.on_conflict_do_update(index_elements=keys, set_=changed)
        return Statement(upsert, table, self.engine.dialect.name)

    def reading(self) -> AbstractContextManager[Connection]:
        """A transaction that does not write, and on SQLite waits for no writer."""
        return self.transaction(**{READS_ONLY: True})

    @contextmanager
    def transaction(self, **options: Any) -> Iterator[Connection]:
        """A transaction with the driver's errors in Rapport's words; options are SQLAlchemy's."""
        with worded():
            connecting = self.engine.connect().execution_options(**options)
            with connecting as connection, connection.begin():
                yield connection


@contextmanager
def worded() -> Iterator[None]:
    """The driver's errors in Rapport's words."""
    try:
        yield
    except StatementError as problem:
        # `from None`: later lines of the driver's message may quote the row
        raise _worded(problem) from None


def _speaker(row: Row) -> tuple[str, str]:
    return row["speaker"], row["role"]


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
    try:
        parsed = sa.make_url(url)
    except (ArgumentError, ValueError):  # a ValueError quotes the port, which may be a password
        raise StoreError("RAPPORT_DATABASE_URL is not a database URL") from None
    if parsed.get_backend_name() not in _INSERTS:
        raise StoreError(
            f"RAPPORT_DATABASE_URL names {parsed.get_backend_name()}; "
            "Rapport writes to postgresql and sqlite"
        )
    if parsed.get_backend_name() == "sqlite" and parsed.database not in (None, "", ":memory:"):
        folder = Path(str(parsed.database)).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise StoreError(f"{folder} cannot be made: {problem.strerror}") from problem
    server = parsed.get_backend_name() == "postgresql"
    pool = {"pool_pre_ping": True, "pool_size": connections} if server else {}
    engine = sa.create_engine(
        parsed.set(drivername=_DRIVERS[parsed.get_backend_name()]),
        hide_parameters=True,
        json_serializer=as_json,
        json_deserializer=msgspec.json.decode,
        **pool,
    )
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _tune_sqlite)
        event.listen(engine, "begin", _begin)
    else:
        event.listen(engine, "connect", _in_utc)
    return Store(engine, now)


def shown_url(url: str | URL) -> str:
    """A database URL as it may be shown: without its passwords."""
    try:
        parsed = sa.make_url(url)
    except (ArgumentError, ValueError):
        return "********"
    secrets_in_query = {name: "masked" for name in parsed.query if "pass" in name.lower()}
    return parsed.update_query_dict(secrets_in_query).render_as_string(hide_password=True)


def _tune_sqlite(connection: Any, _record: object) -> None:
    """WAL lets readers go on while the worker writes; transactions are begun by us.

    The states of a batch are some MiB: a smaller cache would write pages of it twice, and a shorter
    log would copy the same pages to the database over and over.
    """
    connection.isolation_level = None
    for pragma in (
        "journal_mode=WAL",
        "synchronous=NORMAL",
        "busy_timeout=10000",
        f"cache_size=-{SQLITE_CACHE_KIB}",
        f"wal_autocheckpoint={SQLITE_LOG_PAGES}",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _in_utc(connection: Any, _record: object) -> None:
    """Times come in the zone of the connection, where those of year 1 and 9999 may have no date."""
    with connection.cursor() as cursor:
        cursor.execute("SET TIME ZONE 'UTC'")
    connection.commit()


def _begin(connection: Connection) -> None:
    """Take the write lock at once where there will be a write: a lock that grows may fail."""
    reads_only = connection.get_execution_options().get(READS_ONLY, False)
    connection.exec_driver_sql("BEGIN" if reads_only else "BEGIN IMMEDIATE")


def _worded(problem: StatementError) -> StoreError:
    if not isinstance(problem, DBAPIError):
        return RowRefused(f"the work cannot be written: {_reason(problem)}")
    if _is_schema_missing(problem):
        return StoreError(SCHEMA_MISSING)
    if _is_about_values(problem):
        return RowRefused(f"the database refused the work: {_reason(problem)}")
    if isinstance(problem, OperationalError | InterfaceError):
        return StoreUnavailable(f"the database does not answer: {_reason(problem)}")
    if problem.connection_invalidated:
        return StoreUnavailable("the connection to the database was lost")
    return StoreError(f"the database refused the work: {_reason(problem)}")


def _is_schema_missing(problem: DBAPIError) -> bool:
    text = str(problem.orig).lower()
    return (
        "no such table" in text
        or "no such column" in text
        or "has no column named" in text
        or getattr(problem.orig, "sqlstate", None) in _UNDEFINED
    )


def _is_about_values(problem: DBAPIError) -> bool:
    """Whether other rows might have been taken.

    Drivers refuse values of their own accord, without a state: SQLite's with any of four errors.
    """
    if problem.connection_invalidated:
        return False
    state = getattr(problem.orig, "sqlstate", None)
    if state is not None:
        return str(state)[:2] in _OF_VALUES
    if isinstance(problem, DataError | IntegrityError | ProgrammingError):
        return True
    return isinstance(problem, InterfaceError) and isinstance(problem.orig, sqlite3.Error)


def _reason(problem: StatementError) -> str:
    """The first line of the driver's message; never the statement, which holds the rows."""
    return str(problem.orig).partition("\n")[0][:200]
