"""Agreement of people and the model: Cohen's kappa with its interval.

Ordinal labels use quadratic weights (a difference of two levels weighs four times a difference of
one); other labels are unweighted. The 95 % interval is the asymptotic one of Fleiss, Cohen and
Everitt (1969); ``tests/web/test_agreement.py`` compares it with a bootstrap. It assumes independent
pairs, so each turn gives only one pair: its first rating (blind ratings take precedence) and the
model's score, or its first two ratings.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import lru_cache
from statistics import NormalDist
from time import monotonic
from typing import Annotated, Final
from weakref import WeakKeyDictionary

from pydantic import Field

from stream_app.contracts.scores import MECHANISMS
from stream_app.findings.cohens_kappa import cohens_kappa
from stream_app.store.sessions.scored_turns import ScoredHead
from stream_app.store.stream.repository import Store
from stream_app.store.work.agreement import (
    RatedTurn,
    compared_turns,
    rated_turns,
    ratings_version,
    shadows,
)

MIN_PAIRS: Final = 20
NORMAL_95: Final = NormalDist().inv_cdf(0.975)
CACHE_SECONDS: Final = 60
MAX_CACHED: Final = 100
ConfusionMatrix = tuple[tuple[int, ...], ...]
"""Confusion matrix: rows are the labels of one side, columns those of the other."""


class Sides(Enum):
    """The two sides that are compared."""

    PEOPLE_MODEL = "people-model"
    PEOPLE_PEOPLE = "people-people"


@dataclass(frozen=True, slots=True)
class Kappa:
    """Chance-corrected agreement; ``problem`` says why kappa or its interval is missing."""

    n: Annotated[int, Field(description="Number of pairs")]
    kappa: Annotated[float | None, Field(description="Cohen's kappa, at most 1")] = None
    low: Annotated[float | None, Field(description="Lower end of the 95 % interval")] = None
    high: Annotated[float | None, Field(description="Upper end of the 95 % interval")] = None
    problem: Annotated[str | None, Field(description="Why kappa or its interval is missing")] = None

    @property
    def words(self) -> str:
        """Words for pages.

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
    """Agreement on one head. ``blind``: number of pairs with blind ratings."""

    head: str
    sides: Sides
    weights: Annotated[str, Field(description="`quadratic` for ordinal labels, else `none`")]
    blind: int
    kappa: Kappa


@dataclass(frozen=True, slots=True)
class ShadowAgreement:
    """Agreement of people with a bundle in force and one in its shadow, on the same turns.

    ``blind``: number of turns rated without the score in view, that of the bundle in force.
    """

    bundle: Annotated[str, Field(description="In force")]
    shadow: Annotated[str, Field(description="In the shadow: `rapport worker --shadow`")]
    head: str
    weights: Annotated[str, Field(description="`quadratic` for ordinal labels, else `none`")]
    blind: int
    in_force: Kappa
    in_shadow: Kappa


_State = tuple[tuple[int, datetime | None], float]
_Cache = dict[tuple[str, tuple[str, ...]], tuple[_State, list[Agreement]]]
_cache: WeakKeyDictionary[Store, _Cache] = WeakKeyDictionary()


def of_bundle(store: Store, bundle: str, names: Sequence[str] = MECHANISMS) -> list[Agreement]:
    """Agreement on these heads of a bundle, over all stored ratings.

    Cached until a rating changes, but at most a minute, because scores may have become final.
    """
    key = bundle, tuple(names)
    state = ratings_version(store), monotonic() // CACHE_SECONDS
    cached = _cache.setdefault(store, {})
    entry = cached.get(key)
    if entry is None or entry[0] != state:
        if len(cached) >= MAX_CACHED:
            cached.clear()
        entry = cached[key] = state, _of_bundle(store, bundle, names)
    return entry[1]


def beside(store: Store, names: Sequence[str] = MECHANISMS) -> list[ShadowAgreement]:
    """Agreement of people with every bundle in the shadow, beside the one in force."""
    return [
        ShadowAgreement(
            bundle,
            shadow,
            head.name,
            "quadratic" if head.ordered else "none",
            sum(turn.blind for turn in turns),
            _kappa_of(head, [(turn.person, turn.in_force) for turn in turns]),
            _kappa_of(head, [(turn.person, turn.shadow) for turn in turns]),
        )
        for bundle, shadow in shadows(store)
        for head, turns in compared_turns(store, bundle, shadow, names).items()
    ]


def _kappa_of(head: ScoredHead, pairs: list[tuple[int, int]]) -> Kappa:
    return kappa(confusion_matrix(pairs, len(head.labels)), ordered=head.ordered)


def _of_bundle(store: Store, bundle: str, names: Sequence[str]) -> list[Agreement]:
    return [
        agreement
        for head, turns in rated_turns(store, bundle, names).items()
        for agreement in (_with_model(head, turns), _among_people(head, turns))
    ]


def confusion_matrix(pairs: Iterable[tuple[int, int]], labels: int) -> ConfusionMatrix:
    """Count pairs of labels.

    >>> confusion_matrix([(0, 0), (0, 1), (1, 1)], 2)
    ((1, 1), (0, 1))
    """
    counts = [[0] * labels for _ in range(labels)]
    for one, other in pairs:
        counts[one][other] += 1
    return tuple(map(tuple, counts))


@lru_cache(maxsize=4096)
def kappa(counts: ConfusionMatrix, *, ordered: bool = True) -> Kappa:
    """Cohen's kappa of a confusion matrix; cached, because pages recompute the same ones."""
    n = sum(map(sum, counts))
    if n < MIN_PAIRS:
        return Kappa(n, problem=f"not enough ratings yet: {n}")
    if _labels_used(counts) < 2 or _labels_used(tuple(zip(*counts, strict=True))) < 2:
        return Kappa(n, problem=f"no kappa: one side used only one level, n {n}")
    value, error = cohens_kappa(counts, ordered=ordered)
    if value == 1.0:
        return Kappa(n, 1.0, problem="perfect agreement, so no interval")
    margin = NORMAL_95 * error
    return Kappa(n, value, max(-1.0, value - margin), min(1.0, value + margin))


def _labels_used(counts: ConfusionMatrix) -> int:
    return sum(any(row) for row in counts)


def _with_model(head: ScoredHead, turns: Sequence[RatedTurn]) -> Agreement:
    both = [turn for turn in turns if turn.people and turn.model is not None]
    pairs = [(turn.people[0], turn.model or 0) for turn in both]
    blind = sum(turn.blind > 0 for turn in both)
    return _agreement(head, Sides.PEOPLE_MODEL, pairs, blind)


def _among_people(head: ScoredHead, turns: Sequence[RatedTurn]) -> Agreement:
    two = [turn for turn in turns if len(turn.people) > 1]
    pairs = [(turn.people[0], turn.people[1]) for turn in two]
    return _agreement(head, Sides.PEOPLE_PEOPLE, pairs, sum(turn.blind > 1 for turn in two))


def _agreement(
    head: ScoredHead, sides: Sides, pairs: list[tuple[int, int]], blind: int
) -> Agreement:
    return Agreement(
        head.name,
        sides,
        "quadratic" if head.ordered else "none",
        blind,
        _kappa_of(head, pairs),
    )
