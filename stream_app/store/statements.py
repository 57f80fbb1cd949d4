"""Bulk statements: compiled once, with values converted per column and passed to the driver.

SQLAlchemy's own path processes every value of every row, which costs more than the database.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final

import msgspec
from sqlalchemy import JSON, Connection, Executable, Table
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.dialects.sqlite import pysqlite

from stream_app.errors import StoreError
from stream_app.store.rows import Row
from stream_app.store.tables import UtcDateTime

Converter = Callable[[Any], object]
_DIALECTS: Final[dict[str, Callable[[], Any]]] = {
    "sqlite": lambda: pysqlite.dialect(paramstyle="qmark"),
    "postgresql": lambda: psycopg.dialect(paramstyle="format"),  # type: ignore[no-untyped-call]
}


class Statement:
    """An INSERT, UPDATE or DELETE with one bind parameter per column.

    Parameters have the names of their columns, optionally with a ``prefix``.
    """

    def __init__(self, statement: Executable, table: Table, dialect: str, prefix: str = "") -> None:
        compiled: Any = statement.compile(dialect=_DIALECTS[dialect]())  # type: ignore[attr-defined]
        self._sql = str(compiled)
        self._names = [name.removeprefix(prefix) for name in compiled.positiontup]
        self._converters = [
            (index, converter)
            for index, name in enumerate(self._names)
            if (converter := _converter(table.c.get(name), dialect)) is not None
        ]

    def run(self, connection: Connection, values: Sequence[Row]) -> int:
        """Execute for each row (at least one); return the number of affected rows.

        Raises:
            StoreError: a time has no time zone.
        """
        pick = itemgetter(*self._names)
        columns: list[Sequence[object]] = list(zip(*map(pick, values), strict=True))
        for index, convert in self._converters:
            columns[index] = [convert(value) for value in columns[index]]
        written = connection.exec_driver_sql(
            self._sql,
            list(zip(*columns, strict=True)),
            execution_options={"preserve_rowcount": True},  # psycopg drops it otherwise
        )
        return written.rowcount


def _converter(column: Any, dialect: str) -> Converter | None:
    """The conversion that the driver needs for a column's values; None for most columns."""
    match column.type if column is not None else None:
        case UtcDateTime():
            return _as_text if dialect == "sqlite" else _in_utc
        case JSON(none_as_null=True):
            return lambda value: None if value is None else as_json(value)
        case JSON():
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
