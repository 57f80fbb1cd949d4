"""Agreement by kinds of coders, with intervals from resampled sessions.

Turns of a session are not independent, so the bootstrap draws whole sessions. Of several pairs of
coders the mean of their kappas is reported (Light 1971); alpha is over all coders of a kind
together, and between two kinds the mean over the pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np

from models.agreement.measures import Weights, alpha, confusion, equal_share, kappa
from models.agreement.ratings import KINDS, MISSING, CodedItems, Ints, Kind
from models.evaluate.resampling import RESAMPLES, interval

MIN_ITEMS: Final = 20
"""Fewest items that two coders must share, as on the console's page of agreement."""

Pair = tuple[int, int]


@dataclass(frozen=True)
class Figure:
    """A statistic with its 95 % interval; None where it is not defined.

    The interval is None if there is only one session to resample, too.
    """

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Comparison:
    """Agreement between two kinds of coders on one variable.

    `pairs`: pairs of coders that share at least `MIN_ITEMS` items; `items`: the items that any of
    them shares, in `sessions` sessions. `linear` and `quadratic` are None for categories.
    `problem` says why there are no figures.
    """

    variable: str
    kinds: tuple[Kind, Kind]
    coders: int
    pairs: int
    sessions: int
    items: int
    equal: Figure | None = None
    kappa: Figure | None = None
    linear: Figure | None = None
    quadratic: Figure | None = None
    alpha: Figure | None = None
    problem: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The fields, for a file of results."""
        return asdict(self)


def compare(coded: CodedItems, resamples: int = RESAMPLES) -> list[Comparison]:
    """Compare every two kinds of coders, and the coders of a kind with each other."""
    found = []
    for number, first in enumerate(KINDS):
        for second in KINDS[number:]:
            pairs = _pairs(coded, first, second)
            if pairs:
                found.append(_compared(coded, (first, second), pairs, resamples))
    return found


def _pairs(coded: CodedItems, first: Kind, second: Kind) -> list[Pair]:
    """Columns of the pairs of coders that share an item."""
    kinds = [coder.kind for coder in coded.coders]
    return [
        (one, other)
        for one, other in combinations(range(len(kinds)), 2)
        if (kinds[one], kinds[other]) == (first, second) and _shared(coded.values, one, other).any()
    ]


def _shared(values: Ints, one: int, other: int) -> Ints:
    return np.asarray((values[:, one] != MISSING) & (values[:, other] != MISSING))


def _compared(
    coded: CodedItems, kinds: tuple[Kind, Kind], pairs: Sequence[Pair], resamples: int
) -> Comparison:
    enough = [pair for pair in pairs if _shared(coded.values, *pair).sum() >= MIN_ITEMS]
    chosen = enough or pairs
    rows = np.any([_shared(coded.values, *pair) for pair in chosen], axis=0)
    values, sessions = coded.values[rows], coded.sessions[rows]
    counted = Comparison(
        coded.variable,
        kinds,
        coders=len({column for pair in chosen for column in pair}),
        pairs=len(chosen),
        sessions=len(np.unique(sessions)),
        items=len(values),
    )
    if not enough:
        problem = f"no two coders share {MIN_ITEMS} items"
        return _with(counted, problem=problem)
    labels, ordered = len(coded.scale.labels), coded.scale.ordered

    def figure(statistic: Callable[[Ints], float]) -> Figure:
        return _figure(sessions, lambda own: statistic(values[own]), resamples)

    def of_pairs(statistic: Callable[[Ints], float]) -> Figure:
        def mean(own: Ints) -> float:
            return _mean(
                statistic(confusion(own[:, one], own[:, other], labels)) for one, other in enough
            )

        return figure(mean)

    def weighted(weights: Weights) -> Figure:
        return of_pairs(lambda counts: kappa(counts, weights))

    columns = sorted({column for pair in enough for column in pair})

    def alphas(own: Ints) -> float:
        if kinds[0] == kinds[1]:
            return alpha(own[:, columns], labels, ordered=ordered)
        return _mean(alpha(own[:, list(pair)], labels, ordered=ordered) for pair in enough)

    return _with(
        counted,
        equal=of_pairs(equal_share),
        kappa=weighted(None),
        linear=weighted("linear") if ordered else None,
        quadratic=weighted("quadratic") if ordered else None,
        alpha=figure(alphas),
    )


def _with(counted: Comparison, **more: Any) -> Comparison:
    return Comparison(**{**asdict(counted), **more})


def _mean(values: Any) -> float:
    """Mean of the defined values; NaN if none is."""
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")


def _figure(sessions: Ints, statistic: Callable[[Ints], float], resamples: int) -> Figure:
    if len(np.unique(sessions)) < 2:
        value = statistic(np.arange(len(sessions)))
        return Figure(None if np.isnan(value) else value)
    found = interval(sessions, statistic, resamples)
    return Figure(
        *(None if np.isnan(found[name]) else found[name] for name in ("value", "low", "high"))
    )
