"""Fills the months of an archive with copies of one that `rapport db archive` wrote.

Archiving 10⁷ turns takes most of an hour, which is not what the benchmark of queries measures. The
copies have other dates, sessions, alerts and outcomes, and the same rows otherwise.
"""

from datetime import date
from pathlib import Path
from typing import Final

import duckdb

from stream_app.store.lifecycle.archived import FACTS, file_of

_IDS: Final = ("session_id", "episode_id", "outcome_id")


def fill(folder: Path, first: date, months: int) -> None:
    """Copy the first month to the following ones, so that there are ``months``."""
    for fact in FACTS:
        source = f"read_parquet('{file_of(folder, fact, first)}', hive_partitioning = false)"
        for later in range(1, months):
            place = first.month - 1 + later
            month = date(first.year + place // 12, place % 12 + 1, 1)
            target = file_of(folder, fact, month)
            target.parent.mkdir(parents=True)
            with duckdb.connect() as connection:
                connection.execute("SET TimeZone = 'UTC'")
                columns = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
                chosen = ", ".join(_shifted(name, kind, later) for name, kind, *_ in columns)
                connection.execute(
                    f"COPY (SELECT {chosen} FROM {source}) TO '{target}' "
                    "(FORMAT parquet, COMPRESSION zstd)"
                )


def _shifted(name: str, kind: str, months: int) -> str:
    if name in _IDS:
        return f"{name} || '-{months}' AS {name}"
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        return f"CAST({name} + INTERVAL {months} MONTH AS {kind}) AS {name}"
    return name
