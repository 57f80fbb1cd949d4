"""Rows as CSV, Parquet and JSON lines, written to whatever takes bytes."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, Final, Protocol

import msgspec
import pyarrow as pa
from pyarrow import parquet

from stream_app.web.exports.columns import Column, ColumnKind, Row, in_order

FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a cell that begins so for a formula; it gets an apostrophe before it."""
_ARROW: Final = {
    ColumnKind.TEXT: pa.string(),
    ColumnKind.INTEGER: pa.int64(),
    ColumnKind.NUMBER: pa.float64(),
    ColumnKind.BOOLEAN: pa.bool_(),
    ColumnKind.TIME: pa.timestamp("us", tz="UTC"),
    ColumnKind.JSON: pa.string(),
}


class Format(Enum):
    """``csv`` and ``jsonl`` in UTF-8; Parquet with zstd."""

    CSV = "csv"
    PARQUET = "parquet"
    JSONL = "jsonl"


MEDIA_TYPES: Final = {
    Format.CSV: "text/csv; charset=utf-8",
    Format.PARQUET: "application/vnd.apache.parquet",
    Format.JSONL: "application/x-ndjson",
}


class Buffer(io.RawIOBase):
    """Takes bytes, gives them out; never seeks, never keeps."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._written = 0

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Any) -> int:
        """Take bytes."""
        part = bytes(data)
        self._parts.append(part)
        self._written += len(part)
        return len(part)

    def tell(self) -> int:
        """Bytes written so far."""
        return self._written

    def drained(self) -> bytes:
        """What was written since the last call."""
        found, self._parts = b"".join(self._parts), []
        return found


class Writer(Protocol):
    """Writes pages of rows."""

    def page(self, rows: Sequence[Row]) -> None:
        """One page."""

    def close(self) -> None:
        """The end of the file."""


def encoded(
    chosen: Format, columns: list[Column], pages: Iterator[Sequence[Row]]
) -> Iterator[bytes]:
    """The file, page by page."""
    buffer = Buffer()
    writer = _WRITERS[chosen](buffer, columns)
    for page in pages:
        writer.page(page)
        if part := buffer.drained():
            yield part
    writer.close()
    yield buffer.drained()


class CsvWriter:
    """RFC 4180 with a line of names; times as RFC 3339."""

    def __init__(self, sink: Buffer, columns: list[Column]) -> None:
        self._sink = sink
        self._columns = columns
        self._write([[column.name for column in columns]])

    def page(self, rows: Sequence[Row]) -> None:
        """One page."""
        columns = self._columns
        self._write(
            [_cell(*pair) for pair in zip(columns, in_order(columns, row), strict=True)]
            for row in rows
        )

    def close(self) -> None:
        """Nothing follows the last line."""

    def _write(self, lines: Iterable[list[Any]]) -> None:
        text = io.StringIO(newline="")
        csv.writer(text).writerows(lines)
        self._sink.write(text.getvalue().encode())


def _cell(column: Column, value: Any) -> Any:
    match column.kind, value:
        case _, None:
            return ""
        case ColumnKind.TIME, _:
            return value.isoformat()
        case ColumnKind.BOOLEAN, _:
            return "true" if value else "false"
        case ColumnKind.JSON, _:
            return msgspec.json.encode(value).decode()
        case ColumnKind.TEXT, str() if value.startswith(FORMULA):
            return f"'{value}"
        case _:
            return value


class ParquetWriter:
    """A row group for each page."""

    def __init__(self, sink: Buffer, columns: list[Column]) -> None:
        self._columns = columns
        self._schema = pa.schema(
            [
                pa.field(column.name, _ARROW[column.kind], metadata={"description": column.meaning})
                for column in columns
            ]
        )
        self._file = pa.PythonFile(sink, mode="w")
        self._writer = parquet.ParquetWriter(self._file, self._schema, compression="zstd")

    def page(self, rows: Sequence[Row]) -> None:
        """One page."""
        if not rows:
            return
        arrays = [
            pa.array([_plain(column, row.get(column.name)) for row in rows], field.type)
            for column, field in zip(self._columns, self._schema, strict=True)
        ]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        """The footer."""
        self._writer.close()


def _plain(column: Column, value: Any) -> Any:
    if column.kind is ColumnKind.JSON and value is not None:
        return msgspec.json.encode(value).decode()
    return value


class JsonLinesWriter:
    """One object a line; objects and lists as they are."""

    def __init__(self, sink: Buffer, columns: list[Column]) -> None:
        self._sink = sink
        self._columns = columns

    def page(self, rows: Sequence[Row]) -> None:
        """One page."""
        names = [column.name for column in self._columns]
        self._sink.write(
            b"".join(
                msgspec.json.encode(dict(zip(names, in_order(self._columns, row), strict=True)))
                + b"\n"
                for row in rows
            )
        )

    def close(self) -> None:
        """Nothing follows the last line."""


_WRITERS: Final[dict[Format, Callable[[Buffer, list[Column]], Writer]]] = {
    Format.CSV: CsvWriter,
    Format.PARQUET: ParquetWriter,
    Format.JSONL: JsonLinesWriter,
}
