"""How far people and the model agree: Cohen's kappa with its interval, from statsmodels.

Steps of a scale count by quadratic weights (two levels apart weigh four times one level apart);
labels without an order count by plain kappa. The interval is the asymptotic one of Fleiss, Cohen
and Everitt (1969) at 95 %, as statsmodels gives it; ``tests/web/test_agreement.py`` compares it
with a bootstrap. It supposes independent pairs, so a turn gives one pair only: its first rating
(blind ones before others) and the model's score, or its first two ratings.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import lru_cache
from time import monotonic
from typing import Annotated, Any, Final
from weakref import WeakKeyDictionary

from pydantic import Field

from stream_app.contracts.scores import MECHANISMS
from stream_app.store.judged import Head
from stream_app.store.reading.agreement import RatedTurn, rated_turns, stamp
from stream_app.store.repository import Store

MIN_PAIRS: Final = 20
KEPT_SECONDS: Final = 60
MAX_REMEMBERED: Final = 100
Table = tuple[tuple[int, ...], ...]
"""Counts: rows are what the one side said, columns what the other said."""


class Sides(Enum):
    """Who is compared."""

    PEOPLE_MODEL = "people-model"
    PEOPLE_PEOPLE = "people-people"


@dataclass(frozen=True, slots=True)
class Kappa:
    """Chance-corrected agreement; without ``kappa``, ``problem`` says why there is none."""

    n: Annotated[int, Field(description="Pairs")]
    kappa: Annotated[float | None, Field(description="Cohen's kappa, at most 1")] = None
    low: Annotated[float | None, Field(description="Lower end of the 95 % interval")] = None
    high: Annotated[float | None, Field(description="Upper end of the 95 % interval")] = None
    problem: Annotated[str | None, Field(description="Why no kappa or interval is given")] = None

    @property
    def words(self) -> str:
        """As it stands on pages.

        >>> Kappa(120, 0.71, 0.62, 0.8).words
        'κ 0.71 [0.62, 0.80], n 120'
        """
        if self.kappa is None:
            return str(self.problem)
        if self.low is None or self.high is None:
            return f"κ {self.kappa:.2f}, n {self.n} ({self.problem})"
        return f"κ {self.kappa:.2f} [{self.low:.2f}, {self.high:.2f}], n {self.n}"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement on one head. ``blind``: pairs whose ratings were given blind, in a sample."""

    head: str
    sides: Sides
    weights: Annotated[str, Field(description="`quadratic` for steps of a scale, else `none`")]
    blind: int
    kappa: Kappa


_State = tuple[tuple[int, datetime | None], float]
_Remembered = dict[tuple[str, tuple[str, ...]], tuple[_State, list[Agreement]]]
_remembered: WeakKeyDictionary[Store, _Remembered] = WeakKeyDictionary()


def of_bundle(store: Store, bundle: str, names: Sequence[str] = MECHANISMS) -> list[Agreement]:
    """Agreement on these heads of a bundle, over all that was rated in this installation.

    Remembered until somebody rates, and for a minute at most: scores become final meanwhile.
    """
    key = bundle, tuple(names)
    state = stamp(store), monotonic() // KEPT_SECONDS
    remembered = _remembered.setdefault(store, {})
    found = remembered.get(key)
    if found is None or found[0] != state:
        if len(remembered) >= MAX_REMEMBERED:
            remembered.clear()
        found = remembered[key] = state, _of_bundle(store, bundle, names)
    return found[1]


def _of_bundle(store: Store, bundle: str, names: Sequence[str]) -> list[Agreement]:
    return [
        agreement
        for head, turns in rated_turns(store, bundle, names).items()
        for agreement in (_with_model(head, turns), _among_people(head, turns))
    ]


def table(pairs: Iterable[tuple[int, int]], labels: int) -> Table:
    """Count pairs.

    >>> table([(0, 0), (0, 1), (1, 1)], 2)
    ((1, 1), (0, 1))
    """
    counts = [[0] * labels for _ in range(labels)]
    for one, other in pairs:
        counts[one][other] += 1
    return tuple(map(tuple, counts))


@lru_cache(maxsize=4096)
def kappa(counts: Table, *, ordered: bool = True) -> Kappa:
    """Kappa of a table; cached, because pages show the same tables again and again."""
    n = sum(map(sum, counts))
    if n < MIN_PAIRS:
        return Kappa(n, problem=f"not enough ratings yet: {n}")
    if _used(counts) < 2 or _used(tuple(zip(*counts, strict=True))) < 2:
        return Kappa(n, problem=f"no kappa: one side used a single level throughout, n {n}")
    result = _from_library(counts, ordered)
    if result.kappa == 1.0:
        return Kappa(n, 1.0, problem="no difference at all, so no interval")
    low, high = max(-1.0, float(result.kappa_low)), min(1.0, float(result.kappa_upp))
    return Kappa(n, float(result.kappa), low, high)


def _from_library(counts: Table, ordered: bool) -> Any:
    import numpy as np  # noqa: PLC0415
    from statsmodels.stats.inter_rater import cohens_kappa  # noqa: PLC0415  # takes a second

    return cohens_kappa(np.array(counts), wt="quadratic" if ordered else None)


def _used(counts: Table) -> int:
    return sum(any(row) for row in counts)


def _with_model(head: Head, turns: Sequence[RatedTurn]) -> Agreement:
    both = [turn for turn in turns if turn.people and turn.model is not None]
    pairs = [(turn.people[0], turn.model or 0) for turn in both]
    blind = sum(turn.blind > 0 for turn in both)
    return _agreement(head, Sides.PEOPLE_MODEL, pairs, blind)


def _among_people(head: Head, turns: Sequence[RatedTurn]) -> Agreement:
    two = [turn for turn in turns if len(turn.people) > 1]
    pairs = [(turn.people[0], turn.people[1]) for turn in two]
    return _agreement(head, Sides.PEOPLE_PEOPLE, pairs, sum(turn.blind > 1 for turn in two))


def _agreement(head: Head, sides: Sides, pairs: list[tuple[int, int]], blind: int) -> Agreement:
    return Agreement(
        head.name,
        sides,
        "quadratic" if head.ordered else "none",
        blind,
        kappa(table(pairs, len(head.labels)), ordered=head.ordered),
    )
