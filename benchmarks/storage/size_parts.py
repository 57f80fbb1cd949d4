"""Break-down of the sizes: columns and indexes by table, the log by relation and record type.

Used by ``python -m benchmarks.sizes --parts``.
"""

import re
from collections import defaultdict
from typing import Any, Final

import psycopg
from msgspec import Struct

from benchmarks.report import markdown

_RELATION: Final = re.compile(r"blkref #\d+: rel \d+/\d+/(\d+)")
_MINIMUM: Final = 1.0
"""Smaller shares, in bytes per turn, are left out."""


class LogPart(Struct, frozen=True):
    """One type of record in the log of one relation; both figures per turn."""

    relation: str
    record: str
    records: float
    bytes: float


class TablePart(Struct, frozen=True):
    """A table's bytes per row: of its columns, and of each index."""

    table: str
    columns: dict[str, float]
    indexes: dict[str, float]


def log_position(connection: "psycopg.Connection[Any]") -> str:
    """The end of the write-ahead log."""
    return str(_one(connection, "SELECT pg_current_wal_insert_lsn()"))


def log_parts(connection: "psycopg.Connection[Any]", since: str, turns: int) -> list[LogPart]:
    """Return the kinds of log records since a position, largest first. Needs a superuser."""
    connection.execute("CREATE EXTENSION IF NOT EXISTS pg_walinspect")
    names = dict(
        connection.execute(
            "SELECT pg_relation_filenode(c.oid)::text, CASE WHEN t.relname IS NULL THEN c.relname"
            " ELSE t.relname || ' (toast)' END FROM pg_class AS c"
            " LEFT JOIN pg_class AS t ON t.reltoastrelid = c.oid OR t.reltoastrelid ="
            " (SELECT indrelid FROM pg_index WHERE indexrelid = c.oid)"
            " WHERE pg_relation_filenode(c.oid) IS NOT NULL"
        ).fetchall()
    )
    connection.execute("SELECT pg_switch_wal()")
    records = connection.execute(
        "SELECT resource_manager, record_type, record_length, block_ref"
        " FROM pg_get_wal_records_info(%s, pg_current_wal_flush_lsn())",
        [since],
    ).fetchall()
    found: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for manager, kind, length, blocks in records:
        place = _RELATION.search(blocks or "")
        relation = str(names.get(place[1], place[1])) if place else "-"
        counted = found[relation, f"{manager} {kind}"]
        counted[0] += 1
        counted[1] += length
    parts = [
        LogPart(relation, kind, count / turns, size / turns)
        for (relation, kind), (count, size) in found.items()
    ]
    return sorted(parts, key=lambda part: -part.bytes)


def table_parts(connection: "psycopg.Connection[Any]", tables: list[str]) -> list[TablePart]:
    """Mean bytes of a row's columns, and bytes of each index per row, of tables with rows."""
    found = []
    for table in tables:
        name = psycopg.sql.Identifier(table)
        rows = _one(connection, psycopg.sql.SQL("SELECT count(*) FROM {}").format(name))
        columns = [
            column
            for (column,) in connection.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass"
                " AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
                [table],
            ).fetchall()
        ]
        if not rows:
            continue
        sums = psycopg.sql.SQL(", ").join(
            psycopg.sql.SQL("coalesce(sum(pg_column_size({})), 0)").format(
                psycopg.sql.Identifier(column)
            )
            for column in columns
        )
        sizes = (
            connection.execute(psycopg.sql.SQL("SELECT {} FROM {}").format(sums, name)).fetchone()
            or ()
        )
        indexes = connection.execute(
            "SELECT indexrelid::regclass::text, pg_relation_size(indexrelid) FROM pg_index"
            " WHERE indrelid = %s::regclass ORDER BY 1",
            [table],
        ).fetchall()
        found.append(
            TablePart(
                table,
                {c: float(size) / rows for c, size in zip(columns, sizes, strict=True)},
                {index: size / rows for index, size in indexes},
            )
        )
    return found


def shown(log: list[LogPart], tables: list[TablePart]) -> str:
    """Both as tables."""
    rows = [
        [part.relation, part.record, f"{part.records:.2f}", f"{part.bytes:,.0f}"]
        for part in log
        if part.bytes >= _MINIMUM
    ]
    total = sum(part.bytes for part in log)
    header = ["relation", "record", "records a turn", "bytes a turn"]
    logged = markdown.table(header, [*rows, ["all", "", "", f"{total:,.0f}"]])
    stored = markdown.table(
        ["table", "column or index", "bytes a row"],
        [
            [part.table, name, f"{size:,.1f}"]
            for part in tables
            for name, size in {**part.columns, **part.indexes}.items()
            if size >= _MINIMUM
        ],
    )
    return f"{logged}\n\n{stored}"


def _one(connection: "psycopg.Connection[Any]", query: Any) -> Any:
    return (connection.execute(query).fetchone() or [0])[0]
