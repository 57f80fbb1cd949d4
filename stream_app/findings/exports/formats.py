"""Encodes rows as CSV, Parquet or JSON lines."""

import codecs
import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, Final, Protocol

import msgspec

from stream_app.analytics.views.columns import Kind
from stream_app.findings.exports.columns import Column, Row, values_in_order
from stream_app.findings.exports.spreadsheet import safe_json, safe_text


class Format(Enum):
    """File format: ``csv`` (with a mark) and ``jsonl`` are UTF-8, Parquet uses zstd."""

    CSV = "csv"
    PARQUET = "parquet"
    JSONL = "jsonl"


MEDIA_TYPES: Final = {
    Format.CSV: "text/csv; charset=utf-8",
    Format.PARQUET: "application/vnd.apache.parquet",
    Format.JSONL: "application/x-ndjson",
}


class Buffer(io.RawIOBase):
    """A write-only stream whose contents are drained after each page; not seekable."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._written = 0

    def writable(self) -> bool:
        """Always True."""
        return True

    def write(self, data: Any) -> int:
        """Append bytes."""
        part = bytes(data)
        self._parts.append(part)
        self._written += len(part)
        return len(part)

    def tell(self) -> int:
        """Number of bytes written so far."""
        return self._written

    def drain(self) -> bytes:
        """Remove and return the bytes written since the last call."""
        found, self._parts = b"".join(self._parts), []
        return found


class Writer(Protocol):
    """Writes rows page by page."""

    def write_page(self, rows: Sequence[Row]) -> None:
        """Write one page of rows."""

    def close(self) -> None:
        """Finish the file."""


def encode(
    chosen: Format, columns: list[Column], pages: Iterator[Sequence[Row]]
) -> Iterator[bytes]:
    """Encode pages of rows; yields the file in chunks."""
    buffer = Buffer()
    writer = _WRITERS[chosen](buffer, columns)
    for page in pages:
        writer.write_page(page)
        if part := buffer.drain():
            yield part
    writer.close()
    yield buffer.drain()


class CsvWriter:
    """CSV (RFC 4180) with a header row; times as RFC 3339; formulas are neutralised.

    Begins with the mark of UTF-8: without it, Excel reads names with umlauts in another encoding.
    """

    def __init__(self, sink: Buffer, columns: list[Column]) -> None:
        self._sink = sink
        self._columns = columns
        self._sink.write(codecs.BOM_UTF8)
        self._write([[column.name for column in columns]])

    def write_page(self, rows: Sequence[Row]) -> None:
        """Write one page of rows."""
        columns = self._columns
        self._write(
            [_cell(*pair) for pair in zip(columns, values_in_order(columns, row), strict=True)]
            for row in rows
        )

    def close(self) -> None:
        """Do nothing: the format has no footer."""

    def _write(self, lines: Iterable[list[Any]]) -> None:
        text = io.StringIO(newline="")
        csv.writer(text).writerows(lines)
        self._sink.write(text.getvalue().encode())


def _cell(column: Column, value: Any) -> Any:
    match column.kind, value:
        case _, None:
            return ""
        case Kind.TIME | Kind.DATE, _:
            return value.isoformat()
        case Kind.BOOLEAN, _:
            return "true" if value else "false"
        case Kind.JSON, _:
            return safe_json(value)
        case _, str():
            return safe_text(value)
        case _:
            return value


class JsonLinesWriter:
    """JSON lines, one object per row."""

    def __init__(self, sink: Buffer, columns: list[Column]) -> None:
        self._sink = sink
        self._columns = columns

    def write_page(self, rows: Sequence[Row]) -> None:
        """Write one page of rows."""
        names = [column.name for column in self._columns]
        self._sink.write(
            b"".join(
                msgspec.json.encode(
                    dict(zip(names, values_in_order(self._columns, row), strict=True))
                )
                + b"\n"
                for row in rows
            )
        )

    def close(self) -> None:
        """Do nothing: the format has no footer."""


def _parquet(sink: Buffer, columns: list[Column]) -> Writer:
    from stream_app.findings.exports.parquet import ParquetWriter  # noqa: PLC0415  # Arrow is large

    return ParquetWriter(sink, columns)


_WRITERS: Final[dict[Format, Callable[[Buffer, list[Column]], Writer]]] = {
    Format.CSV: CsvWriter,
    Format.PARQUET: _parquet,
    Format.JSONL: JsonLinesWriter,
}
