"""Values that several coders gave to the same items, as input of agreement statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Kind = Literal["expert", "llm", "rapport"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
MISSING: Final = -1


class RatingsError(ValueError):
    """Ratings that contradict each other or their scale."""


@dataclass(frozen=True)
class Scale:
    """The values of a variable; `ordered`: from least to most, so that distances count."""

    labels: tuple[str, ...]
    ordered: bool


@dataclass(frozen=True, order=True)
class Coder:
    """A coder; `name` is unique."""

    name: str
    kind: Kind


@dataclass(frozen=True)
class Rating:
    """One value that one coder gave to one item (a turn) of a session."""

    session: str
    item: str
    coder: Coder
    variable: str
    value: str


@dataclass(frozen=True)
class CodedItems:
    """All values of one variable.

    `values` [items, coders] has positions in `scale.labels`, `MISSING` where a coder gave none;
    `sessions` [items] numbers the session of each item.
    """

    variable: str
    scale: Scale
    coders: tuple[Coder, ...]
    values: Ints
    sessions: Ints


def by_variable(ratings: Iterable[Rating], scales: Mapping[str, Scale]) -> list[CodedItems]:
    """Arrange ratings by variable, in the order in which variables appear.

    A variable without an entry in `scales` gets the scale that `guess_scale` finds.

    Raises:
        RatingsError: a coder gave an item two different values, is of two kinds, or used a value
            that the scale lacks.
    """
    grouped: dict[str, list[Rating]] = {}
    kinds: dict[str, Kind] = {}
    for each in ratings:
        grouped.setdefault(each.variable, []).append(each)
        if kinds.setdefault(each.coder.name, each.coder.kind) != each.coder.kind:
            raise RatingsError(f"coder {each.coder.name!r} has two kinds; names must be unique")
    return [
        _arranged(name, scales.get(name) or guess_scale({each.value for each in own}), own)
        for name, own in grouped.items()
    ]


def guess_scale(values: Iterable[str]) -> Scale:
    """Whole numbers are ordered, from the smallest to the largest; other values are categories.

    Every number in between belongs to the scale, because weights count its steps; beyond 100 steps
    the values used are the scale.

    >>> guess_scale({"3", "1"})
    Scale(labels=('1', '2', '3'), ordered=True)
    >>> guess_scale({"open", "closed"})
    Scale(labels=('closed', 'open'), ordered=False)
    """
    found = sorted(set(values))
    try:
        numbers = sorted({int(value) for value in found})
    except ValueError:
        return Scale(tuple(found), ordered=False)
    if len(numbers) != len(found):  # such as 1 and 01
        return Scale(tuple(found), ordered=False)
    if numbers[-1] - numbers[0] > 100:
        return Scale(tuple(sorted(found, key=int)), ordered=True)
    written = {int(value): value for value in found}
    steps = range(numbers[0], numbers[-1] + 1)
    return Scale(tuple(written.get(step, str(step)) for step in steps), ordered=True)


def _arranged(name: str, scale: Scale, own: Sequence[Rating]) -> CodedItems:
    items = {key: row for row, key in enumerate(dict.fromkeys((r.session, r.item) for r in own))}
    sessions = {key: n for n, key in enumerate(dict.fromkeys(session for session, _ in items))}
    coders = sorted({each.coder for each in own}, key=lambda c: (KINDS.index(c.kind), c.name))
    column = {coder: place for place, coder in enumerate(coders)}
    position = {label: place for place, label in enumerate(scale.labels)}
    values = np.full((len(items), len(coders)), MISSING, np.int64)
    for each in own:
        if each.value not in position:
            raise RatingsError(
                f"{name}: the value {each.value!r} of coder {each.coder.name!r} is not on the "
                f"scale {', '.join(scale.labels)}"
            )
        place = items[each.session, each.item], column[each.coder]
        if values[place] not in (MISSING, position[each.value]):
            raise RatingsError(
                f"{name}: coder {each.coder.name!r} gave item {each.item!r} of session "
                f"{each.session!r} two different values"
            )
        values[place] = position[each.value]
    numbers = np.array([sessions[session] for session, _ in items], np.int64)
    return CodedItems(name, scale, tuple(coders), values, numbers)
