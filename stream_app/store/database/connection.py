"""Opens SQLite or PostgreSQL; transactions, upserts, and translation of driver errors."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

import msgspec
import psycopg
import sqlalchemy as sa
import structlog
from sqlalchemy import URL, Connection, Engine, ExceptionContext, Table, event
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    DisconnectionError,
    IntegrityError,
    InterfaceError,
    NoSuchTableError,
    OperationalError,
    ProgrammingError,
    StatementError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry

from stream_app.errors import RolledBack, RowExists, RowRefused, StoreError, StoreUnavailable
from stream_app.sealing.sources import OTHERS, OWNER_ONLY
from stream_app.store.database import copying, statements, tables
from stream_app.store.database.clocks import DatabaseClock
from stream_app.store.database.rows import Row
from stream_app.store.database.secrets import sqlite_file
from stream_app.store.database.statements import as_json

log = structlog.get_logger(__name__)

READ_ONLY: Final = "rapport_read_only"
SQLITE_CACHE_KIB: Final = 16 * 1024
SQLITE_LOG_PAGES: Final = 4000
PING_AFTER: Final = 1.0
"""Seconds without use after which a connection to a server is checked before it is used."""
USED_AT: Final = "rapport_used_at"
CURSORS: Final = "rapport_cursors"
SCRUB_TRIES: Final = 3
"""Each waits for writers and readers as long as the busy timeout."""
SCHEMA_MISSING: Final = "the database has no Rapport tables (or old ones): run `rapport db upgrade`"
_DRIVERS: Final = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg"}
_UNDEFINED: Final = ("42P01", "42703")  # PostgreSQL: undefined table, undefined column
_DATA_ERRORS: Final = ("22", "23", "54")
"""Classes of PostgreSQL's SQLSTATE: data exceptions, constraint violations, exceeded limits."""
_ROLLED_BACK: Final = "40"
"""Class of PostgreSQL's SQLSTATE after a deadlock or a serialisation failure."""
_READ_ONLY_STATE: Final = "25006"
_LOST: Final = (_READ_ONLY_STATE, "25P03", "25P04")
"""PostgreSQL: the server is read-only, as after a failover, or ended a transaction for its time."""
READ_ONLY_SERVER: Final = (
    "the database is read-only: it is a replica, or in recovery, or set so "
    "(default_transaction_read_only)"
)
_KNOWN_KEYS: Final = ("23505", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_UNIQUE")
"""How PostgreSQL and SQLite say that a row with this key exists."""


class Database:
    """An engine with transactions and upserts; driver errors become ``StoreError``."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.clock = DatabaseClock()
        self.cannot_write = False
        """Whether the latest transaction that may write failed because of the database."""
        server = engine.dialect.name == "postgresql"
        if server:
            event.listen(engine, "connect", self.clock.read_by)
        self._autocommit = (
            engine.execution_options(isolation_level="AUTOCOMMIT") if server else None
        )
        self._keys = {
            name: tuple(column.name for column in table.primary_key)
            for name, table in tables.metadata.tables.items()
        }

    def load_primary_keys(self) -> None:
        """Read the tables' actual primary keys from the database.

        Partitioned tables have the partition column in their key, and an upsert must name the key
        exactly. SQLite has no partitions.
        """
        if self.engine.dialect.name == "sqlite":
            return
        with self._inspector() as inspector:
            found = {
                name: key
                for (_, name), key in inspector.get_multi_pk_constraint(
                    filter_names=list(self._keys)
                ).items()
            }
        if not found.keys() >= self._keys.keys():
            raise StoreError(SCHEMA_MISSING)
        for name in self._keys:
            key = found[name] or {"constrained_columns": []}
            self._keys[name] = tuple(key["constrained_columns"])

    def check_schema(self) -> None:
        """Check that the database has every table and column of this release.

        Raises:
            StoreError: some are missing; the message names them and the command to run.
        """
        with self._inspector() as inspector:  # one query on PostgreSQL
            names = list(tables.metadata.tables)
            existing = {
                name: {column["name"] for column in columns}
                for (_, name), columns in inspector.get_multi_columns(filter_names=names).items()
            }
        missing = []
        for name, table in tables.metadata.tables.items():
            if name not in existing:
                missing.append(name)
                continue
            absent = (column.name for column in table.c if column.name not in existing[name])
            missing += [f"{name}.{column}" for column in absent]
        if missing:
            raise StoreError(f"{SCHEMA_MISSING}; missing: {', '.join(missing[:5])}")

    @contextmanager
    def _inspector(self) -> Iterator[sa.Inspector]:
        with self.reading() as connection:
            try:
                yield sa.inspect(connection)
            except NoSuchTableError:
                raise StoreError(SCHEMA_MISSING) from None

    def ping(self) -> None:
        """Raise StoreUnavailable if the database does not answer, or a server refuses to write.

        Then the connections are dropped: after a failover, new ones reach another server.
        """
        with self.reading() as connection:
            if connection.dialect.name == "sqlite":
                connection.execute(sa.text("SELECT 1"))
            elif connection.scalar(sa.text("SHOW transaction_read_only")) == "on":
                connection.invalidate()
                raise StoreUnavailable(READ_ONLY_SERVER)

    def is_pooled(self) -> bool:
        """Whether a pooler such as PgBouncer answers for the server.

        It gives its clients another process id than that of the server's session.
        """
        if self.engine.dialect.name == "sqlite":
            return False
        with self.reading() as connection:
            pid = connection.scalar(sa.text("SELECT pg_backend_pid()"))
            client: Any = connection.connection.driver_connection
            return bool(pid != client.info.backend_pid)

    def scrub(self) -> bool:
        """Rewrite SQLite's file without what was deleted, and truncate its log.

        ``secure_delete`` overwrites deleted rows, but not the copies that remain in free space when
        SQLite has moved rows between pages. It takes as long as copying the file, and writers wait.

        Returns False if others kept using the database, or the disk is full. Does nothing on
        PostgreSQL, where autovacuum frees that space.
        """
        if self.engine.dialect.name != "sqlite":
            return True
        with translate_errors(), self.engine.connect() as connection:
            raw = connection.connection.cursor()
            try:
                raw.execute("VACUUM")
            except sqlite3.OperationalError as problem:
                log.warning("database.not_rewritten", problem=str(problem))
                return False
            for _ in range(SCRUB_TRIES):
                [(busy, *_)] = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                if not busy:
                    return True
        return False

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def upsert(
        self, connection: Connection, table: Table, values: list[Row], *, keep: bool
    ) -> None:
        """Insert rows; on a conflict ``keep`` the existing row or replace it."""
        if not values:
            return
        dialect = self.engine.dialect.name
        keys = self._keys[table.name]
        statements.upsert(table, tuple(values[0]), keys, dialect, keep=keep).run(connection, values)

    def insert(self, connection: Connection, table: Table, values: list[Row]) -> None:
        """Insert new rows; on PostgreSQL with less work and log than ``upsert``.

        Raises:
            RowExists: one is not new; the transaction can only be rolled back.
        """
        if values:
            dialect = self.engine.dialect.name
            statements.insert(table, tuple(values[0]), dialect).run(connection, values)

    def update(self, connection: Connection, table: Table, values: list[Row]) -> None:
        """Replace rows that exist, or if some do not, insert or replace all.

        On PostgreSQL an UPDATE logs less than an INSERT that finds a conflict, which locks the row.
        """
        if not values:
            return
        names, keys = tuple(values[0]), self._keys[table.name]
        dialect = self.engine.dialect.name
        if statements.update(table, names, keys, dialect).run(connection, values) != len(values):
            self.upsert(connection, table, values, keep=False)

    def reading(self, **options: Any) -> AbstractContextManager[Connection]:
        """A connection for reading; on SQLite a transaction that does not wait for writers.

        On PostgreSQL without ``options`` every statement is a transaction of its own. In the level
        READ COMMITTED each would see its own snapshot anyway, and the statements BEGIN and COMMIT
        would take longer than most queries.
        """
        if self._autocommit is not None and not options:
            return self._reading(self._autocommit)
        return self.transaction(**{READ_ONLY: True}, **options)

    def single_statement(self) -> AbstractContextManager[Connection]:
        """A connection for one statement that writes.

        On PostgreSQL the statement is a transaction of its own: BEGIN and COMMIT would each wait
        for the database once more.
        """
        if self._autocommit is None:
            return self.transaction()
        return self._reading(self._autocommit, writes=True)

    @contextmanager
    def _reading(self, engine: Engine, *, writes: bool = False) -> Iterator[Connection]:
        with (
            self._watched(writes=writes),
            translate_errors(),
            engine.connect() as connection,
        ):
            yield connection

    @contextmanager
    def transaction(self, **options: Any) -> Iterator[Connection]:
        """A transaction whose driver errors become ``StoreError``; options are SQLAlchemy's."""
        with self._watched(writes=not options.get(READ_ONLY, False)), translate_errors():
            connecting = self.engine.connect().execution_options(**options)
            with connecting as connection, connection.begin():
                yield connection

    @contextmanager
    def _watched(self, *, writes: bool) -> Iterator[None]:
        try:
            yield
        except RolledBack:
            raise
        except StoreUnavailable:
            self.cannot_write = self.cannot_write or writes
            raise
        if writes:
            self.cannot_write = False

    def try_to_write(self) -> None:
        """Begin a transaction that may write, over a connection of the pool.

        Raises:
            StoreUnavailable: no connection can be had, or it cannot write.
        """
        with self.transaction() as connection:
            connection.execute(sa.text("SELECT 1"))


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise driver errors as ``StoreError`` with messages for people."""
    try:
        yield
    except StatementError as problem:
        # `from None`: later lines of the driver's message may quote the row
        raise _store_error(problem) from None
    except PoolTimeout:
        raise StoreUnavailable(
            "all connections of this process to the database are in use"
        ) from None


def open_engine(
    url: str, connections: int, overflow: int, *, prepare: bool = True, create: bool = True
) -> Engine:
    """Create an engine from an SQLAlchemy URL.

    Of a server's connections, the one that was returned last is used next: it has prepared most
    statements already, and others stay idle while they are not needed.

    Args:
        url: the database.
        connections: how many are kept to a server.
        overflow: how many more may be open at a time; these are closed after use.
        prepare: let a server prepare repeated statements; never done behind a recognised pooler.
        create: make an SQLite database that is not there; else to connect to it is an error.

    Raises:
        StoreError: the URL is invalid, or neither SQLite nor PostgreSQL.
    """
    try:
        parsed = sa.make_url(url)
    except (ArgumentError, ValueError):  # a ValueError quotes the port, which may be a password
        raise StoreError("RAPPORT_DATABASE_URL is not a database URL") from None
    if parsed.get_backend_name() not in _DRIVERS:
        raise StoreError(
            f"RAPPORT_DATABASE_URL names {parsed.get_backend_name()}; "
            "Rapport supports postgresql and sqlite"
        )
    file = sqlite_file(parsed)
    if file is not None and create:
        _create(file)
    elif file is not None and file.exists():
        _restrict_mode(file)
    server = parsed.get_backend_name() == "postgresql"
    pool = (
        {"pool_size": connections, "max_overflow": overflow, "pool_use_lifo": True}
        if server
        else {}
    )
    engine = sa.create_engine(
        parsed.set(drivername=_DRIVERS[parsed.get_backend_name()]),
        hide_parameters=True,
        json_serializer=as_json,
        json_deserializer=msgspec.json.decode,
        **pool,
    )
    event.listen(engine, "after_cursor_execute", _note_cursor)
    event.listen(engine, "rollback", _close_cursors)
    event.listen(engine, "commit", _close_cursors)
    if engine.dialect.name == "sqlite":
        if file is not None and not create:
            event.listen(engine, "do_connect", partial(_check_exists, file))
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_transaction)
    else:
        copying.enable(engine)
        event.listen(engine, "handle_error", _drop_if_lost)
        event.listen(engine, "connect", _set_utc)
        event.listen(engine, "connect", _prepare_if_direct if prepare else _prepare_nothing)
        event.listen(engine, "connect", _note_use)
        event.listen(engine, "checkin", _note_use)
        event.listen(engine, "checkout", _ping_if_idle)
    return engine


def _create(file: Path) -> None:
    """Create an SQLite database's folder and file.

    Raises:
        StoreError: the folder cannot be created.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise StoreError(f"{file.parent} cannot be created: {problem.strerror}") from problem
    _restrict_mode(file)


def _check_exists(file: Path, *_: object) -> None:
    """SQLite would make an empty file of a name that is wrong, and leave it there.

    Raises:
        StoreError: there is no such file.
    """
    if not file.exists():
        raise StoreError(f"{file} does not exist: run `rapport db upgrade`")


def _restrict_mode(file: Path) -> None:
    """Set the mode of an SQLite file to 0600; SQLite creates its log with the same mode."""
    try:
        file.touch(mode=OWNER_ONLY)
        if file.stat().st_mode & OTHERS:
            file.chmod(OWNER_ONLY)
        for suffix in ("-wal", "-shm"):
            companion = file.with_name(f"{file.name}{suffix}")
            if companion.exists() and companion.stat().st_mode & OTHERS:
                companion.chmod(OWNER_ONLY)
    except OSError as problem:  # not our file; `rapport doctor` reports it
        log.warning("database.mode", file=str(file), problem=problem.strerror)


def with_password(url: str, password: str) -> str:
    """A database URL with this password; one that cannot be parsed is returned as it is.

    Raises:
        StoreError: the URL has a password already.
    """
    try:
        parsed = sa.make_url(url)
    except (ArgumentError, ValueError):  # reported when the database is opened
        return url
    if parsed.password is not None or "password" in parsed.query:
        raise StoreError(
            "RAPPORT_DATABASE_URL contains a password and RAPPORT_DATABASE_PASSWORD is set: "
            "remove one of them"
        )
    return parsed.set(password=password).render_as_string(hide_password=False)


def masked_url(url: str | URL) -> str:
    """A database URL with its passwords masked."""
    try:
        parsed = sa.make_url(url)
    except (ArgumentError, ValueError):
        return "********"
    secrets_in_query = {name: "masked" for name in parsed.query if "pass" in name.lower()}
    return parsed.update_query_dict(secrets_in_query).render_as_string(hide_password=True)


def _configure_sqlite(connection: Any, _record: object) -> None:
    """Configure a connection: WAL for concurrent readers, explicit BEGIN (see below).

    The states of a batch are some MiB: a smaller cache would write pages of it twice, and a shorter
    log would repeatedly copy the same pages to the database.
    """
    connection.isolation_level = None
    for pragma in (
        "journal_mode=WAL",
        "synchronous=NORMAL",
        "busy_timeout=10000",
        f"cache_size=-{SQLITE_CACHE_KIB}",
        f"wal_autocheckpoint={SQLITE_LOG_PAGES}",
        "secure_delete=ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _set_utc(connection: Any, _record: object) -> None:
    """Read times in UTC: in other time zones, years 1 and 9999 may overflow."""
    with connection.cursor() as cursor:
        cursor.execute("SET TIME ZONE 'UTC'")
    connection.commit()


def _prepare_if_direct(connection: Any, record: object) -> None:
    """Prepare no statements behind a pooler: its next transaction may be in another session.

    There, a statement of this name is missing, or is that of another client.
    """
    with connection.cursor() as cursor:
        [pid] = cursor.execute("SELECT pg_backend_pid()").fetchone()
    connection.commit()
    if pid != connection.info.backend_pid:
        _prepare_nothing(connection, record)


def _prepare_nothing(connection: Any, _record: object) -> None:
    connection.prepare_threshold = None


def _drop_if_lost(context: ExceptionContext) -> None:
    """Drop all connections if the server cannot be used for now; new ones may reach another."""
    if _is_lost(context.original_exception):
        context.is_disconnect = True


def _is_lost(problem: BaseException | None) -> bool:
    return getattr(problem, "sqlstate", None) in _LOST


def _note_use(_connection: object, record: ConnectionPoolEntry) -> None:
    record.info[USED_AT] = time.monotonic()


def _ping_if_idle(connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
    """Check a connection that was not used lately; the pool replaces one that was closed.

    Checking every connection, as ``pool_pre_ping`` does, takes longer than most queries.
    """
    if time.monotonic() - record.info[USED_AT] < PING_AFTER:
        return
    try:
        connection.execute("")
        connection.rollback()
    except psycopg.Error as problem:
        raise DisconnectionError from problem


def _note_cursor(connection: Connection, cursor: Any, *_: object) -> None:
    connection.info.setdefault(CURSORS, WeakSet()).add(cursor)


def _close_cursors(connection: Connection) -> None:
    """Close what a reader left open when an exception ended it between two rows.

    The exception's traceback keeps the cursor, and with it SQLite's snapshot, beyond the end of the
    transaction: the connection would read old rows and could not write.
    """
    if not connection.closed and not connection.invalidated:
        for cursor in connection.info.pop(CURSORS, ()):
            cursor.close()


def _begin_transaction(connection: Connection) -> None:
    """Take the write lock immediately if writing: upgrading a read lock may fail."""
    read_only = connection.get_execution_options().get(READ_ONLY, False)
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")


def _store_error(problem: StatementError) -> StoreError:
    if not isinstance(problem, DBAPIError):
        return RowRefused(f"the values cannot be written: {_reason(problem)}")
    if _is_schema_missing(problem):
        return StoreError(SCHEMA_MISSING)
    if _is_data_error(problem):
        kind = RowExists if _is_known_key(problem) else RowRefused
        return kind(f"the database rejected the statement: {_reason(problem)}")
    if isinstance(problem, OperationalError | InterfaceError) or _is_lost(problem.orig):
        return _unavailable(problem)
    if problem.connection_invalidated:
        return StoreUnavailable("the connection to the database was lost")
    return StoreError(f"the database rejected the statement: {_reason(problem)}")


def _is_schema_missing(problem: DBAPIError) -> bool:
    text = str(problem.orig).lower()
    return (
        "no such table" in text
        or "no such column" in text
        or "has no column named" in text
        or getattr(problem.orig, "sqlstate", None) in _UNDEFINED
    )


def _unavailable(problem: DBAPIError) -> StoreUnavailable:
    reason, state = _reason(problem), getattr(problem.orig, "sqlstate", None)
    if state is not None and str(state).startswith(_ROLLED_BACK):
        return RolledBack(f"another transaction was in the way: {reason}; try again")
    if state == _READ_ONLY_STATE:
        return StoreUnavailable(READ_ONLY_SERVER)
    if "certificate" in reason and not state:  # libpq's words
        return StoreUnavailable(
            f"the database's certificate was refused: {reason}; check the host, sslmode and "
            "sslrootcert in RAPPORT_DATABASE_URL"
        )
    return StoreUnavailable(f"the database does not answer: {reason}")


def _is_known_key(problem: DBAPIError) -> bool:
    names = (getattr(problem.orig, name, None) for name in ("sqlstate", "sqlite_errorname"))
    return any(name in _KNOWN_KEYS for name in names)


def _is_data_error(problem: DBAPIError) -> bool:
    """Whether these values are the cause, so that other rows may be accepted.

    Drivers also reject values themselves, without an SQLSTATE: SQLite's with any of four errors.
    """
    if problem.connection_invalidated:
        return False
    state = getattr(problem.orig, "sqlstate", None)
    if state is not None:
        return str(state)[:2] in _DATA_ERRORS
    if isinstance(problem, DataError | IntegrityError | ProgrammingError):
        return True
    return isinstance(problem, InterfaceError) and isinstance(problem.orig, sqlite3.Error)


def _reason(problem: StatementError) -> str:
    """The first line of the driver's message; never the statement, which contains the rows."""
    return str(problem.orig).partition("\n")[0][:200]
