"""Facts of the database and of the archive, as the same views in DuckDB.

The rows that a reader needs are copied from the database; the archive's files are read where they
are. Each session comes from one side: from the files if ``archived_sessions`` names it. What
arrives later for an archived session is left out, except outcomes.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.analytics.archive import arrow_rows
from stream_app.analytics.views import schema
from stream_app.analytics.views.dialects import DIALECTS, Dialect, literal
from stream_app.store.database.connection import READ_ONLY
from stream_app.store.database.tables import archived_sessions, bundles
from stream_app.store.lifecycle import archived
from stream_app.store.lifecycle.archived import FACTS, ArchiveError, file_of
from stream_app.store.stream.repository import Store

LATER: Final = ("fact_outcome", "fact_rating")
"""Facts with ids of their own: those of archived sessions may be in the database."""
_EVERYTHING: Final = sa.true()


class Facts:
    """An open reader; ``connection`` is the database's, with one state for all statements."""

    def __init__(self, connection: Connection, folder: Path | None) -> None:
        self.connection = connection
        self.views = {view.name: view for view in schema.wanted(connection)}
        self._folder = folder
        self._months: list[date] = []
        import duckdb  # noqa: PLC0415  # the demo simulates frames, and is installed without it

        self._duck = duckdb.connect(config={"autoinstall_known_extensions": "false"})
        self._duck.execute("SET TimeZone = 'UTC'")
        self.choose_archived(_EVERYTHING)

    @property
    def dialect(self) -> Dialect:
        """The database's dialect."""
        return DIALECTS[self.connection.dialect.name]

    def manifests(self) -> list[dict[str, Any]]:
        """Manifests of the bundles that have scored, in the views' order."""
        query = sa.select(bundles.c.manifest).order_by(bundles.c.bundle)
        return list(self.connection.scalars(query))

    def choose_archived(self, condition: sa.ColumnElement[bool]) -> None:
        """Read only these archived sessions; the condition is on ``archived_sessions``."""
        table = archived_sessions.c
        rows = self.connection.execute(
            sa.select(table.session_id, table.month).where(condition, archived.shown())
        )
        found = rows.all()
        self._months = sorted({row.month for row in found})
        ids = pa.array([row.session_id for row in found], pa.string())
        self._duck.register("archived", pa.table({"session_id": ids}))

    def load(
        self,
        fact: str,
        condition: sa.ColumnElement[bool] = _EVERYTHING,
        names: Sequence[str] | None = None,
    ) -> None:
        """Make the view of a fact, with these columns.

        Args:
            fact: the view's name.
            condition: on the view's columns; which of the database's rows.
            names: columns; None: all.

        Raises:
            ArchiveError: files are missing.
        """
        view = self.views[fact]
        if fact not in LATER:
            moved = sa.select(archived_sessions.c.session_id)
            condition = sa.and_(condition, sa.column("session_id").not_in(moved))
        rows = arrow_rows.read(self.connection, view, condition, names)
        wanted = arrow_rows.schema_of(view, names)
        self._duck.register(f"live_{fact}", pa.Table.from_batches(rows, wanted))
        query = f"SELECT * FROM live_{fact}"
        if fact in FACTS and self._months:
            files = ", ".join(literal(str(file)) for file in self._files(fact))
            query += (
                " UNION ALL BY NAME SELECT * EXCLUDE (month) FROM read_parquet("
                f"[{files}], union_by_name = true, hive_partitioning = true) "
                "SEMI JOIN archived USING (session_id)"
            )
        self._duck.execute(f"CREATE OR REPLACE TEMP VIEW {fact} AS {query}")

    def table(self, name: str, rows: pd.DataFrame) -> None:
        """Make a table that queries can use beside the facts."""
        self._duck.register(name, rows)

    def query(self, sql: str) -> pd.DataFrame:
        """The result of a query over the loaded facts; times are in UTC."""
        found: pd.DataFrame = self._duck.sql(sql).to_arrow_table().to_pandas()
        return found

    def _files(self, fact: str) -> list[Path]:
        if self._folder is None:
            raise ArchiveError(
                "sessions of these months are archived: set RAPPORT_ARCHIVE to the folder"
            )
        files = [file_of(self._folder, fact, month) for month in self._months]
        lacking = [str(file) for file in files if not file.exists()]
        if lacking:
            raise ArchiveError(f"the archive lacks {len(lacking)} files, first {lacking[0]}")
        return files

    def close(self) -> None:
        """Forget the copies."""
        self._duck.close()


@contextmanager
def opened(store: Store, folder: Path | None) -> Iterator[Facts]:
    """Open the facts of the database and of the archive in this folder.

    Raises:
        ArchiveError: the folder belongs to another database.
    """
    if folder is not None:
        archived.check_owner(store, folder)
    with archived.snapshot(store, **{READ_ONLY: True}) as connection:
        facts = Facts(connection, folder)
        try:
            yield facts
        finally:
            facts.close()
