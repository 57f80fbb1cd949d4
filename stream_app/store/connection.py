"""Opens a database and words its errors; transactions and upserts on either of the two kinds."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import sqlalchemy as sa
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

from stream_app.errors import RowRefused, StoreError, StoreUnavailable
from stream_app.store import tables
from stream_app.store.rows import Row
from stream_app.store.statements import Statement, as_json

READS_ONLY: Final = "rapport_reads_only"
SQLITE_CACHE_KIB: Final = 16 * 1024
SQLITE_LOG_PAGES: Final = 4000
SCHEMA_MISSING: Final = "the database has no Rapport tables (or old ones): run `rapport db upgrade`"
_DRIVERS: Final = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg"}
_UNDEFINED: Final = ("42P01", "42703")  # PostgreSQL: undefined table, undefined column
_OF_VALUES: Final = ("22", "23", "54")
"""Classes of PostgreSQL's SQLSTATE: data exceptions, constraints, limits of a row or an index."""
_INSERTS: Final[dict[str, Callable[[Table], Any]]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}


class Database:
    """An engine with transactions, upserts, and errors in Rapport's words."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._insert = _INSERTS[engine.dialect.name]
        self._keys = {
            name: [column.name for column in table.primary_key]
            for name, table in tables.metadata.tables.items()
        }
        self._upserts: dict[tuple[str, tuple[str, ...], bool], Statement] = {}

    def read_keys(self) -> None:
        """Look up the primary keys that the tables have.

        Those of partitioned tables hold the partition's column, too, and an upsert has to name
        them exactly.
        """
        with self._inspected() as inspector:
            for name in self._keys:
                self._keys[name] = inspector.get_pk_constraint(name)["constrained_columns"]
        self._upserts.clear()

    def check_schema(self) -> None:
        """Check that the database has every table and column of this release.

        Raises:
            StoreError: some are missing; says which, and what to run.
        """
        missing = []
        with self._inspected() as inspector:
            there = set(inspector.get_table_names())
            for name, table in tables.metadata.tables.items():
                if name not in there:
                    missing.append(name)
                    continue
                columns = {column["name"] for column in inspector.get_columns(name)}
                lacking = (column.name for column in table.c if column.name not in columns)
                missing += [f"{name}.{column}" for column in lacking]
        if missing:
            raise StoreError(f"{SCHEMA_MISSING}; missing: {', '.join(missing[:5])}")

    @contextmanager
    def _inspected(self) -> Iterator[sa.Inspector]:
        with self.reading() as connection:
            try:
                yield sa.inspect(connection)
            except NoSuchTableError:
                raise StoreError(SCHEMA_MISSING) from None

    def ping(self) -> None:
        """Raise StoreUnavailable if the database does not answer."""
        with self.reading() as connection:
            connection.execute(sa.text("SELECT 1"))

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def insert(self, table: Table) -> Any:
        """The dialect's INSERT, which knows what to do on a conflict."""
        return self._insert(table)

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


def open_engine(url: str, connections: int) -> Engine:
    """An engine for a database by its SQLAlchemy URL.

    Raises:
        StoreError: the URL is not one of the two kinds of database.
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
    return engine


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

    Drivers also refuse values themselves, without a state: SQLite's with any of four errors.
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
