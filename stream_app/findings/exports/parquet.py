"""Encodes rows as Parquet."""

import io
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyarrow import parquet

from stream_app.analytics.archive import arrow_rows
from stream_app.analytics.views.columns import Kind
from stream_app.findings.exports.columns import Column, Row

_ARROW: Final = {**arrow_rows.TYPES, Kind.JSON: pa.string()}


class ParquetWriter:
    """Parquet with one row group per page."""

    def __init__(self, sink: io.RawIOBase, columns: list[Column]) -> None:
        self._columns = columns
        self._schema = pa.schema(
            [
                pa.field(column.name, _ARROW[column.kind], metadata={"description": column.meaning})
                for column in columns
            ]
        )
        self._file = pa.PythonFile(sink, mode="w")
        self._writer = parquet.ParquetWriter(self._file, self._schema, compression="zstd")

    def write_page(self, rows: Sequence[Row]) -> None:
        """Write one page of rows."""
        if not rows:
            return
        arrays = [
            pa.array([_without_json(column, row.get(column.name)) for row in rows], field.type)
            for column, field in zip(self._columns, self._schema, strict=True)
        ]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()


def _without_json(column: Column, value: Any) -> Any:
    if column.kind is Kind.JSON and value is not None:
        return msgspec.json.encode(value).decode()
    return value
