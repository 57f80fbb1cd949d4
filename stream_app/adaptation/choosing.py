"""Chooses how a head is changed, in inner folds by counsellor, and fits it.

The inner folds choose among the candidates of a method and the weight of disputes. The bundle as it
is, is chosen unless the best candidate is better by more than one standard error (Breiman et al.
1984, section 3.4.3).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from stream_app.adaptation import thresholds
from stream_app.adaptation.estimates import standard_error
from stream_app.adaptation.fitting import (
    Candidate,
    Fit,
    Floats,
    HeadData,
    Ints,
    log_loss,
    path,
    unchanged,
)

FOLDS: Final = 5
MIN_RATINGS: Final = 8
DISPUTE_WEIGHTS: Final = (0.0, 0.5, 1.0)


class Named(Protocol):
    """A candidate as cards name it."""

    @property
    def words(self) -> str:
        """Words for cards."""
        ...


class Model(Protocol):
    """The result of a fit."""

    def predict(self, data: HeadData) -> Floats:
        """Probabilities [n, labels]."""
        ...


ModelT = TypeVar("ModelT", bound=Model)
CandidateT = TypeVar("CandidateT", bound=Named)


@dataclass(frozen=True, slots=True)
class Method(Generic[CandidateT, ModelT]):
    """A way to change a head.

    ``groups``: the candidates, in groups that ``fit`` fits together, a model each. ``unchanged``:
    the bundle as it is. ``simpler``: a method whose best candidate has to be beaten as well, if
    there is one.
    """

    groups: Callable[[HeadData], Sequence[Sequence[CandidateT]]]
    fit: Callable[[HeadData, Sequence[CandidateT]], Sequence[ModelT]]
    unchanged: Callable[[HeadData], ModelT]
    simpler: "Method[Any, Any] | None" = None


class Choice(NamedTuple):
    """The candidate that the inner folds chose; ``candidate`` None: the bundle as it is."""

    candidate: Named | None
    dispute_weight: float = 0.0

    @property
    def words(self) -> str:
        """Words for cards."""
        if self.candidate is None:
            return "as shipped"
        disputes = f", disputes at {self.dispute_weight:g}" if self.dispute_weight else ""
        return self.candidate.words + disputes


@dataclass(frozen=True, slots=True)
class Fitted(Generic[ModelT]):
    """A choice, fitted; ``offsets`` as in ``HeadSpec``."""

    choice: Choice
    fit: ModelT
    offsets: tuple[float, ...]


def _families(data: HeadData) -> list[list[Candidate]]:
    return [[one for one in data.candidates if one.family is family] for family in data.families]


def _fit_family(data: HeadData, candidates: Sequence[Candidate]) -> list[Fit]:
    return path(data, candidates[0].family, [one.precision for one in candidates])


RECALIBRATION: Final = Method(_families, _fit_family, unchanged)


def learn(data: HeadData, method: Method[Any, ModelT]) -> Fitted[ModelT]:
    """Choose with the inner folds, and fit on all rows."""
    choice = choose(data, method)
    if choice.candidate is None:
        return Fitted(choice, method.unchanged(data), data.offsets)
    [found] = method.fit(data.weighted(choice.dispute_weight), [choice.candidate])
    rated = data.rows(~data.disputed)
    offsets = thresholds.fit_offsets(
        found.predict(rated), rated.target.argmax(axis=-1), data.offsets, ordered=data.ordered
    )
    return Fitted(choice, found, offsets)


def choose(data: HeadData, method: Method[Any, Any] = RECALIBRATION) -> Choice:
    """The candidate with the lowest log loss over the inner folds, or the bundle as it is."""
    rated = data.rows(~data.disputed)
    if len(rated) < MIN_RATINGS or len(np.unique(rated.group)) < 2:
        return Choice(None)
    parts = list(folds(rated.group))
    best, loss = _best(rated, method, parts)
    bars = [log_loss(rated.own, rated.target)]
    if method.simpler is not None:
        bars.append(_best(rated, method.simpler, parts)[1])
    for bar in bars:
        gain = loss - bar
        if float(gain.mean()) + standard_error(gain, rated.group) >= 0.0:
            return Choice(None)
    if not data.disputed.any():
        return Choice(best)
    return Choice(best, _dispute_weight(data, rated, method, best, parts))


def _best(rated: HeadData, method: Method[Any, Any], parts: Sequence[Ints]) -> tuple[Any, Floats]:
    """The candidate with the lowest log loss out of the inner folds, and its losses [n]."""
    losses: dict[Any, Floats] = {}
    for held_out in parts:
        inside = np.isin(rated.group, held_out)
        some, rest = rated.rows(inside), rated.rows(~inside)
        for group in method.groups(rated):
            for candidate, found in zip(group, method.fit(rest, group), strict=True):
                loss = losses.setdefault(candidate, np.zeros(len(rated)))
                loss[inside] = log_loss(found.predict(some), some.target)
    best = min(losses, key=lambda candidate: float(losses[candidate].mean()))
    return best, losses[best]


def _dispute_weight(
    data: HeadData,
    rated: HeadData,
    method: Method[Any, Any],
    best: Named,
    parts: Sequence[Ints],
) -> float:
    """The weight of disputes that helps to predict ratings most; the smallest of equal ones.

    Only contested scores become disputes, so that they are no sample of the turns.
    """
    found = []
    for weight in DISPUTE_WEIGHTS:
        total = 0.0
        for held_out in parts:
            some = rated.rows(np.isin(rated.group, held_out))
            rest = data.rows(~np.isin(data.group, held_out)).weighted(weight)
            [fitted] = method.fit(rest, [best])
            total += float(log_loss(fitted.predict(some), some.target).sum())
        found.append(total)
    return DISPUTE_WEIGHTS[int(np.argmin(found))]


def folds(group: Ints, rated_groups: Ints | None = None) -> Iterator[Ints]:
    """Counsellors of each fold: the largest first, always into the smallest fold so far.

    ``rated_groups``: rows that balance the folds; counsellors without any follow at the end.
    """
    counted = group if rated_groups is None else rated_groups
    names = np.unique(group)
    sizes = {int(name): int((counted == name).sum()) for name in names}
    number = min(FOLDS, len(names))
    parts: list[list[int]] = [[] for _ in range(number)]
    filled = [0] * number
    for name in sorted(sizes, key=lambda one: (-sizes[one], one)):
        place = filled.index(min(filled))
        parts[place].append(name)
        filled[place] += max(1, sizes[name])
    yield from (np.array(part, dtype=np.int64) for part in parts)
