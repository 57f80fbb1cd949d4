"""Statements for many rows: compiled once, and their values given to the driver as it takes them.

SQLAlchemy's own way looks at every value of every row anew, which costs more than the database.
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

Turned = Callable[[Any], object]
_DIALECTS: Final[dict[str, Callable[[], Any]]] = {
    "sqlite": lambda: pysqlite.dialect(paramstyle="qmark"),
    "postgresql": lambda: psycopg.dialect(paramstyle="format"),  # type: ignore[no-untyped-call]
}


class Statement:
    """An INSERT, UPDATE or DELETE with one parameter for each of some columns.

    A parameter is named as its column, or as that with ``prefix`` before it.
    """

    def __init__(self, statement: Executable, table: Table, dialect: str, prefix: str = "") -> None:
        compiled: Any = statement.compile(dialect=_DIALECTS[dialect]())  # type: ignore[attr-defined]
        self._sql = str(compiled)
        self._names = [name.removeprefix(prefix) for name in compiled.positiontup]
        self._turned = [
            (place, turn)
            for place, name in enumerate(self._names)
            if (turn := _turn(table.c.get(name), dialect)) is not None
        ]

    def run(self, connection: Connection, values: Sequence[Row]) -> int:
        """Execute for each of some rows, at least one; returns how many rows were touched.

        Raises:
            StoreError: a time has no zone.
        """
        pick = itemgetter(*self._names)
        columns: list[Sequence[object]] = list(zip(*map(pick, values), strict=True))
        for place, turn in self._turned:
            columns[place] = [turn(value) for value in columns[place]]
        written = connection.exec_driver_sql(
            self._sql,
            list(zip(*columns, strict=True)),
            execution_options={"preserve_rowcount": True},  # psycopg forgets it
        )
        return written.rowcount


def _turn(column: Any, dialect: str) -> Turned | None:
    """What the driver needs done to a column's values; most go as they are."""
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
        raise StoreError("the work cannot be written: a time without a zone cannot be stored")
    return moment.astimezone(UTC)


@lru_cache(4096)
def _as_text(moment: datetime | None) -> str | None:
    """As SQLAlchemy writes and reads times on SQLite; a batch has the same ones many times."""
    known = _in_utc(moment)
    return known.isoformat(" ", "microseconds")[:26] if known is not None else None


def as_json(value: object) -> str:
    """A JSON column's text; structs are written as in the wire contract."""
    return msgspec.json.encode(value).decode()
