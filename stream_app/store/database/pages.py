"""Keyset pagination: cursors encode the sort values of a page's last row."""

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
    """A cursor that does not belong to this list."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Items and the cursor of the next page, None on the last page."""

    items: list[T]
    next_cursor: str | None


def encode_cursor(order: str, values: Sequence[Any]) -> str:
    """Encode the sort values of the last row of a page."""
    plain = [value.isoformat() if isinstance(value, datetime) else value for value in values]
    return base64.urlsafe_b64encode(json.dumps([order, *plain]).encode()).decode().rstrip("=")


def decode_cursor(order: str, cursor: str, types: Sequence[type]) -> list[Any]:
    """Decode the sort values of a cursor; ``types``: of each value.

    Raises:
        BadCursor: the cursor belongs to another list, or is invalid.
    """
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        given, *plain = json.loads(base64.urlsafe_b64decode(padded.encode("ascii")))
        if given != order or len(plain) != len(types):
            raise ValueError
        return [_convert(kind, value) for kind, value in zip(types, plain, strict=True)]
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise BadCursor("this cursor does not belong to this list; start without one") from None


def _convert(kind: type, value: Any) -> Any:
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


def rows_after(keys: Sequence[tuple[Key, bool]], values: Sequence[Any]) -> sa.ColumnElement[bool]:
    """Condition for rows after ``values`` in the order of ``keys``, (column, descending) pairs.

    If all descend or none does, an index on the columns finds the first of these rows.
    """
    bounds = [
        sa.literal(value, None if isinstance(column.type, sa.types.NullType) else column.type)
        for (column, _), value in zip(keys, values, strict=True)
    ]
    if len({descending for _, descending in keys}) == 1:
        columns, last = sa.tuple_(*(column for column, _ in keys)), sa.tuple_(*bounds)
        return columns < last if keys[0][1] else columns > last
    steps = []
    for place, ((column, descending), bound) in enumerate(zip(keys, bounds, strict=True)):
        equal = [keys[i][0] == bounds[i] for i in range(place)]
        steps.append(sa.and_(*equal, column < bound if descending else column > bound))
    return sa.or_(*steps)
