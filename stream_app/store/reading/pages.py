"""Pages by cursor: what follows a place in an order, whatever is added meanwhile."""

import base64
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

from stream_app.errors import RapportError

T = TypeVar("T")
Key = sa.ColumnElement[Any]


class BadCursor(RapportError):
    """A cursor that no page of this list gave out."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some items, and the cursor of the next page; None on the last one."""

    items: list[T]
    next_cursor: str | None


def cursor_of(order: str, values: Sequence[Any]) -> str:
    """The place after a row with these sort values."""
    plain = [value.isoformat() if isinstance(value, datetime) else value for value in values]
    return base64.urlsafe_b64encode(json.dumps([order, *plain]).encode()).decode().rstrip("=")


def place_of(order: str, cursor: str, kinds: Sequence[type]) -> list[Any]:
    """The sort values in a cursor, of the given kinds.

    Raises:
        BadCursor: it is from another list, or made up.
    """
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        given, *plain = json.loads(base64.urlsafe_b64decode(padded.encode("ascii")))
        if given != order or len(plain) != len(kinds):
            raise ValueError
        return [_as(kind, value) for kind, value in zip(kinds, plain, strict=True)]
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise BadCursor("this cursor does not belong to this list; begin without one") from None


def _as(kind: type, value: Any) -> Any:
    if kind is datetime:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError
        return moment.astimezone(UTC)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        raise ValueError
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError
    if isinstance(value, str) and b"\0" in value.encode():  # a lone surrogate is a ValueError
        raise ValueError
    return value


def after(keys: Sequence[tuple[Key, bool]], values: Sequence[Any]) -> sa.ColumnElement[bool]:
    """Rows that come after ``values`` in an order of (column, descending) pairs."""
    steps = []
    for place, ((column, descending), value) in enumerate(zip(keys, values, strict=True)):
        equal = [keys[i][0] == values[i] for i in range(place)]
        steps.append(sa.and_(*equal, column < value if descending else column > value))
    return sa.or_(*steps)
