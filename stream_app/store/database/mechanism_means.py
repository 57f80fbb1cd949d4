"""Stores the mechanisms of a session's score on PostgreSQL as an array instead of named JSON.

The array has the numbers of each mechanism of ``MECHANISMS`` in turn, in the order of ``PARTS``; it
is empty without counsellor turns. A mechanism without a score has nulls. SQLite stores JSON.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs
from sqlalchemy import ARRAY, JSON, Dialect, Double, TypeDecorator
from sqlalchemy.types import TypeEngine

from stream_app.contracts.scores import MECHANISMS, MechanismSummary

PARTS: Final = MechanismSummary.__struct_fields__


class MechanismMeans(TypeDecorator[Any]):
    """``double precision[]`` on PostgreSQL, and JSON on SQLite."""

    impl = JSON
    cache_ok = True

    @property
    def python_type(self) -> type:
        """The type of a JSON value."""
        return dict

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """An array on PostgreSQL."""
        return dialect.type_descriptor(ARRAY(Double()) if is_array(dialect.name) else JSON())

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """Convert to what the database's driver gets."""
        return as_numbers(value) if is_array(dialect.name) else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Return the mechanisms by name."""
        return as_mechanisms(value) if is_array(dialect.name) else value


def is_array(dialect: str) -> bool:
    """Whether this kind of database stores an array."""
    return dialect == "postgresql"


def place(mechanism: str, part: str) -> int:
    """The place of a number in the array, from 1 as in SQL.

    >>> place("emotional_reactions", "mean"), place("explorations", "share")
    (1, 9)
    """
    return MECHANISMS.index(mechanism) * len(PARTS) + PARTS.index(part) + 1


def as_numbers(mechanisms: Mapping[str, Any]) -> list[float | None]:
    """The array of these mechanisms, each a struct or a dictionary."""
    if not mechanisms:
        return []
    numbers: list[float | None] = []
    for name in MECHANISMS:
        found = mechanisms.get(name) or {}
        parts = found if isinstance(found, Mapping) else structs.asdict(found)
        numbers += (parts.get(part) for part in PARTS)
    return numbers


def as_mechanisms(numbers: list[float | None]) -> dict[str, dict[str, float | None]]:
    """The mechanisms of an array, as in JSON.

    >>> as_mechanisms(as_numbers({"interpretations": MechanismSummary(0.5, 1.0, 0.25)}))
    {'interpretations': {'mean': 0.5, 'recent_mean': 1.0, 'share': 0.25}}
    """
    size = len(PARTS)
    by_name = {
        name: numbers[start : start + size]
        for name, start in zip(MECHANISMS, range(0, len(numbers), size), strict=False)
    }
    return {
        name: dict(zip(PARTS, parts, strict=True))
        for name, parts in by_name.items()
        if parts[0] is not None
    }
