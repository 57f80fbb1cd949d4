"""Rows of the reporting views as Arrow tables, with the same types from either database."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.analytics.views.columns import Column, Kind, View

ROWS_AT_A_TIME: Final = 50_000
TYPES: Final = {
    Kind.TEXT: pa.string(),
    Kind.INTEGER: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.timestamp("us", tz="UTC"),
}


def schema_of(view: View, names: Sequence[str] | None = None) -> pa.Schema:
    """The Arrow schema of a view, or of these columns."""
    return pa.schema([(column.name, TYPES[column.kind]) for column in _chosen(view, names)])


def read(
    connection: Connection,
    view: View,
    condition: sa.ColumnElement[bool],
    names: Sequence[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The view's rows that meet a condition, in batches; the database need not have the view."""
    columns = _chosen(view, names)
    schema = schema_of(view, names)
    query = _query(view, columns).where(condition)
    streamed = query.execution_options(yield_per=ROWS_AT_A_TIME)
    for rows in connection.execute(streamed).partitions():
        values = zip(*rows, strict=True)
        arrays = [_array(column, part) for column, part in zip(columns, values, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def count(connection: Connection, view: View, condition: sa.ColumnElement[bool]) -> int:
    """Number of the view's rows that meet a condition, counted by the database."""
    rows = _query(view, view.columns[:2]).where(condition).subquery()
    return int(connection.scalar(sa.select(sa.func.count()).select_from(rows)) or 0)


def _query(view: View, columns: Sequence[Column]) -> sa.Select[Any]:
    names = [column.name for column in columns]
    plain = view.query({*names, "session_id"}).replace(":", r"\:")
    source = sa.text(f"({plain}) AS f")
    chosen: list[sa.ColumnElement[Any]] = [sa.column(name) for name in names]
    return sa.select(*chosen).select_from(source)


def _chosen(view: View, names: Sequence[str] | None) -> list[Column]:
    return [column for column in view.columns if names is None or column.name in names]


def _array(column: Column, values: Sequence[Any]) -> pa.Array:
    """SQLite has texts for dates and times, 0 and 1 for booleans."""
    kind, wanted = column.kind, TYPES[column.kind]
    if kind in (Kind.DATE, Kind.TIME) and any(isinstance(value, str) for value in values):
        plain = pa.date32() if kind is Kind.DATE else pa.timestamp("us")
        return pa.array(values, pa.string()).cast(plain).cast(wanted)
    if kind is Kind.BOOLEAN:
        return pa.array([None if value is None else bool(value) for value in values], wanted)
    if kind is Kind.INTEGER:
        return pa.array([None if value is None else int(value) for value in values], wanted)
    return pa.array(values, wanted)
