"""Refits the reference distribution of the empathy index by domain, from ended sessions.

The mean of the sessions' level is fitted by EM: with known spreads its new value is the mean of the
sessions' posterior means (Dempster et al. 1977), which are their indices. Quantiles, the lowest
tenth and the share of answered opportunities are those of the sessions. All are shrunk towards the
bundle's: weight n / (n + k) for n sessions, k chosen by cross-validation over counsellors.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from msgspec import structs

from stream_app.adaptation.choosing import folds
from stream_app.adaptation.crossvalidation import MIN_COUNSELLORS
from stream_app.adaptation.estimates import Estimate, clustered_mean, standard_error
from stream_app.adaptation.fitting import Floats, Ints
from stream_app.core.measures.empathy import ENOUGH_SESSIONS, DomainEmpathy

STRENGTHS: Final = (10.0, 30.0, 100.0, 300.0, 1000.0)
"""Numbers of sessions that the bundle's own reference counts as."""
PASSES: Final = 3
LOW: Final = 0.1
DIGITS: Final = 4


class SessionIndex(NamedTuple):
    """A session's empathy index and answered share under a reference; ``group``: counsellor."""

    value: float
    answered: float | None
    group: int


class ReferenceFit(NamedTuple):
    """A domain's new reference; ``difference``: of the pinball loss, adapted - parent."""

    domain: str
    sessions: int
    counsellors: int
    strength: float | None
    difference: Estimate
    reference: DomainEmpathy

    @property
    def passes(self) -> bool:
        """The gate: the whole interval of the difference is below 0."""
        return self.strength is not None and self.difference.high < 0.0


Measure = Callable[[DomainEmpathy], Sequence[SessionIndex]]
"""The ended sessions of a domain under a reference."""


def refit(domain: str, shipped: DomainEmpathy, measure: Measure) -> ReferenceFit | None:
    """The domain's reference; None with too few sessions or counsellors."""
    found = measure(shipped)
    if len(found) < ENOUGH_SESSIONS or len({one.group for one in found}) < MIN_COUNSELLORS:
        return None
    here = shipped
    for _ in range(PASSES):
        here = structs.replace(here, mean=float(np.mean([one.value for one in found])))
        found = measure(here)
    index = np.array([one.value for one in found])
    group = np.array([one.group for one in found], dtype=np.int64)
    levels = np.linspace(0.0, 1.0, len(shipped.quantiles))
    prior = np.array(shipped.quantiles)
    strength = _strength(index, group, levels, prior)
    predicted = np.tile(prior, (len(index), 1))
    for held_out in folds(group):
        inside = np.isin(group, held_out)
        own = _strength(index[~inside], group[~inside], levels, prior)
        predicted[inside] = _mixed(index[~inside], levels, prior, own)
    change = pinball(index, predicted, levels) - pinball(index, prior[None, :], levels)
    counted = len(index)
    share = 0.0 if strength is None else counted / (counted + strength)
    answered = [one.answered for one in found if one.answered is not None]
    quantiles = _mixed(index, levels, prior, strength)
    return ReferenceFit(
        domain,
        counted,
        len(np.unique(group)),
        strength,
        clustered_mean(change, group),
        structs.replace(
            shipped,
            mean=round(share * here.mean + (1 - share) * shipped.mean, DIGITS),
            quantiles=[round(float(value), DIGITS) for value in quantiles],
            low=round(float(np.interp(LOW, levels, quantiles)), DIGITS),
            answered_share=round(
                share * float(np.mean(answered)) + (1 - share) * shipped.answered_share
                if answered
                else shipped.answered_share,
                DIGITS,
            ),
        ),
    )


def pinball(values: Floats, quantiles: Floats, levels: Floats) -> Floats:
    """Pinball loss of each value [n], averaged over the quantiles [n or 1, levels].

    Proportional to the continuous ranked probability score as the levels grow dense (Gneiting and
    Raftery 2007, sections 4.2 and 6.2).
    """
    gap = values[:, None] - quantiles
    return np.asarray(np.maximum(levels * gap, (levels - 1.0) * gap).mean(axis=1))


def _mixed(index: Floats, levels: Floats, prior: Floats, strength: float | None) -> Floats:
    if strength is None or not len(index):
        return prior
    share = len(index) / (len(index) + strength)
    return np.asarray(share * np.quantile(index, levels) + (1.0 - share) * prior)


def _strength(index: Floats, group: Ints, levels: Floats, prior: Floats) -> float | None:
    """The best weight of the prior; None keeps the bundle's reference."""
    before = pinball(index, prior[None, :], levels)
    losses = {strength: np.array(before) for strength in STRENGTHS}
    for held_out in folds(group):
        inside = np.isin(group, held_out)
        for strength, loss in losses.items():
            own = _mixed(index[~inside], levels, prior, strength)
            loss[inside] = pinball(index[inside], own[None, :], levels)
    best = min(losses, key=lambda strength: float(losses[strength].mean()))
    gain = losses[best] - before
    return best if float(gain.mean()) + standard_error(gain, group) < 0.0 else None
