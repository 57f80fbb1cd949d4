"""Bulk statements: compiled once in a process, with values converted per column.

SQLAlchemy's own path processes every value of every row, which costs more than the database.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from sqlalchemy import JSON, Connection, Executable, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.dialects.sqlite import pysqlite

from stream_app.errors import StoreError
from stream_app.store.database import copying, mechanism_means
from stream_app.store.database.head_columns import Part
from stream_app.store.database.mechanism_means import MechanismMeans
from stream_app.store.database.rows import Row
from stream_app.store.database.tables import MERGE, UtcDateTime

Converter = Callable[[Any], object]
_DIALECTS: Final[dict[str, Callable[[], Any]]] = {
    "sqlite": lambda: pysqlite.dialect(paramstyle="qmark"),
    "postgresql": lambda: psycopg.dialect(paramstyle="format"),  # type: ignore[no-untyped-call]
}
_INSERTS: Final[dict[str, Callable[[Table], Any]]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}


class Statement:
    """An INSERT, UPDATE, DELETE or COPY that takes one value per column."""

    def __init__(self, sql: str, names: Sequence[str], table: Table, dialect: str) -> None:
        """``names``: the columns in the order in which ``sql`` takes them."""
        self._sql = sql
        self._names = names
        self._converters = [
            (index, converter)
            for index, name in enumerate(names)
            if (converter := _converter(table.c.get(name), dialect)) is not None
        ]

    def run(self, connection: Connection, values: Sequence[Row]) -> int:
        """Execute for each row (at least one); return the number of affected rows.

        Raises:
            StoreError: a time has no time zone.
        """
        columns: list[Sequence[object]] = [[row[name] for row in values] for name in self._names]
        for index, convert in self._converters:
            columns[index] = [convert(value) for value in columns[index]]
        written = connection.exec_driver_sql(
            self._sql,
            list(zip(*columns, strict=True)),
            execution_options={"preserve_rowcount": True},  # psycopg drops it otherwise
        )
        return written.rowcount


def compiled(statement: Executable, table: Table, dialect: str, prefix: str = "") -> Statement:
    """A statement whose bind parameters have the names of their columns after ``prefix``."""
    found: Any = statement.compile(dialect=_dialect(dialect))  # type: ignore[attr-defined]
    names = [name.removeprefix(prefix) for name in found.positiontup]
    return Statement(str(found), names, table, dialect)


def insert_for(table: Table, dialect: str) -> Any:
    """An insert that knows what the database's dialect does on conflict."""
    return _INSERTS[dialect](table)


@cache
def insert_new(table: Table, dialect: str) -> Statement:
    """An INSERT of all columns that keeps existing rows."""
    insert = insert_for(table, dialect).values({c.name: sa.bindparam(c.name) for c in table.c})
    return compiled(insert.on_conflict_do_nothing(), table, dialect)


@cache
def insert(table: Table, names: tuple[str, ...], dialect: str) -> Statement:
    """An INSERT of these columns that fails if a row with the same key exists.

    On PostgreSQL a COPY; see ``copying``.
    """
    if dialect == "postgresql":
        return Statement(copying.copy_from(table, names), names, table, dialect)
    insert = insert_for(table, dialect).values({name: sa.bindparam(name) for name in names})
    return compiled(insert, table, dialect)


@cache
def upsert(
    table: Table, names: tuple[str, ...], keys: tuple[str, ...], dialect: str, *, keep: bool
) -> Statement:
    """An INSERT of these columns that keeps or replaces the existing row with these ``keys``."""
    insert = insert_for(table, dialect).values({name: sa.bindparam(name) for name in names})
    if keep:
        return compiled(insert.on_conflict_do_nothing(index_elements=keys), table, dialect)
    changed = {
        column.name: merge(insert.excluded[column.name], column)
        if (merge := column.info.get(MERGE))
        else insert.excluded[column.name]
        for column in table.c
        if column.name not in keys
    }
    replace = insert.on_conflict_do_update(index_elements=keys, set_=changed)
    return compiled(replace, table, dialect)


@cache
def update(table: Table, names: tuple[str, ...], keys: tuple[str, ...], dialect: str) -> Statement:
    """An UPDATE of the row with these ``keys``, with the values that ``upsert`` gives it."""
    new = {name: sa.bindparam(f"b_{name}", type_=table.c[name].type) for name in names}
    changed = {
        name: merge(new[name], table.c[name])
        if (merge := table.c[name].info.get(MERGE))
        else new[name]
        for name in names
        if name not in keys
    }
    same = (table.c[key] == new[key] for key in keys)
    return compiled(sa.update(table).where(*same).values(changed), table, dialect, prefix="b_")


@cache
def _dialect(name: str) -> Any:
    return _DIALECTS[name]()


def _converter(column: Any, dialect: str) -> Converter | None:
    """The conversion that the driver needs for a column's values; None for most columns."""
    match column.type if column is not None else None:
        case UtcDateTime():
            return _as_text if dialect == "sqlite" else _in_utc
        case MechanismMeans():
            return mechanism_means.as_numbers if mechanism_means.is_array(dialect) else as_json
        case JSON(none_as_null=True):
            return lambda value: None if value is None else as_json(value)
        case JSON() | Part():
            return as_json
        case _:
            return None


def _in_utc(moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise StoreError("a time without a time zone cannot be stored")
    return moment.astimezone(UTC)


@lru_cache(4096)
def _as_text(moment: datetime | None) -> str | None:
    """SQLAlchemy's text format for times on SQLite; cached, as a batch repeats the same times."""
    known = _in_utc(moment)
    return known.isoformat(" ", "microseconds")[:26] if known is not None else None


def as_json(value: object) -> str:
    """Encode a JSON column; structs are encoded as in the wire contract."""
    return msgspec.json.encode(value).decode()
