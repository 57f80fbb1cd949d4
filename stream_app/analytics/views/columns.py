"""Types of columns, and a view's columns: what they hold and how they are computed."""

from collections.abc import Collection
from enum import Enum

from msgspec import Struct


class Kind(Enum):
    """Type of a column of a view or an export.

    Views on SQLite have texts for dates (YYYY-MM-DD) and times (UTC), and 0 and 1 for booleans.
    ``json`` is an object or list, exported as JSON text in CSV and Parquet; no view has it.
    """

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    TIME = "time"
    JSON = "json"


class Column(Struct, frozen=True):
    """``meaning`` starts with the unit or range, where there is one."""

    name: str
    kind: Kind
    sql: str
    meaning: str


def plain(table: str, *columns: tuple[str, Kind, str]) -> tuple[Column, ...]:
    """Columns of a table under their own names: name, kind, meaning."""
    return tuple(Column(name, kind, f"{table}.{name}", meaning) for name, kind, meaning in columns)


class View(Struct, frozen=True):
    """``grain``: what one row is. ``source``: everything from FROM on."""

    name: str
    grain: str
    columns: tuple[Column, ...]
    source: str
    ahead: str = ""

    @property
    def sql(self) -> str:
        """The statement that makes it."""
        return f"CREATE VIEW {self.name} AS\n{self.query()}"

    def query(self, names: Collection[str] | None = None) -> str:
        """The view's query, with all columns or only these."""
        chosen = ",\n  ".join(
            f"{column.sql} AS {column.name}"
            for column in self.columns
            if names is None or column.name in names
        )
        ahead = f"{self.ahead}\n" if self.ahead else ""
        return f"{ahead}SELECT\n  {chosen}\n{self.source}"
