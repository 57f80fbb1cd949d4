"""Nested cross-validation of an adaptation of one head, by counsellor, and the gate.

Counsellors of a fold have no part in what is chosen (``choosing``) and fitted for it.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from stream_app.adaptation.choosing import RECALIBRATION, Method, folds, learn
from stream_app.adaptation.estimates import (
    Estimate,
    clustered_mean,
    confusions,
    kappa,
    kappa_difference,
    kappa_interval,
    rank_correlation,
)
from stream_app.adaptation.fitting import Floats, HeadData, Ints, log_loss
from stream_app.inference.bundles.calibration import choose_labels

MIN_COUNSELLORS: Final = 5
KAPPA_MARGIN: Final = 0.02
"""A drop of kappa within this margin is no loss for the gate."""


@dataclass(frozen=True, slots=True)
class Validation:
    """Out-of-fold figures of one head, on ratings alone.

    ``log_loss`` and ``kappa``: (parent, adapted). Differences are adapted - parent. ``kappa`` has
    quadratic weights for levels and none for other heads. ``agreement``: the adapted kappa with its
    interval. ``rank``: rank correlation of the adapted level or probability with the ratings; NaN
    for labels without an order. ``predicted``: [n, labels] out of fold.
    """

    ratings: int
    blind: int
    counsellors: int
    log_loss: tuple[float, float]
    log_loss_difference: Estimate
    kappa: tuple[float, float]
    kappa_difference: Estimate
    agreement: Estimate
    rank: Estimate
    choices: tuple[str, ...]
    predicted: Floats
    labels: Ints

    @property
    def passes(self) -> bool:
        """The gate: less log loss for certain, no certain loss of agreement, and some agreement.

        The whole interval of the log-loss difference is below 0, kappa is not lower by more than
        ``KAPPA_MARGIN`` at best, and people and bundle agree beyond chance: a bundle that only
        learns how often each label is given has less log loss even where raters guess.
        """
        kept = self.kappa_difference
        worse = kept.value < -KAPPA_MARGIN or kept.high < 0.0
        return self.gains and self.agrees and not worse

    @property
    def gains(self) -> bool:
        """Whether the log loss is lower for certain."""
        return bool(self.log_loss_difference.high < 0.0)

    @property
    def agrees(self) -> bool:
        """Whether kappa or the rank correlation is above 0 for certain."""
        return self.agreement.above_zero or self.rank.above_zero

    @property
    def missing(self) -> int | None:
        """About how many more ratings would tell what is not certain yet; None: nobody knows."""
        found = []
        if not self.gains and self.log_loss_difference.value < 0.0:
            found.append(self.log_loss_difference.missing(self.ratings))
        if not self.agrees and self.agreement.value > 0.0:
            found.append(self.agreement.missing(self.ratings))
        known = [number for number in found if number]
        return max(known) if known and len(known) == len(found) else None


def validate(data: HeadData, method: Method[Any, Any] = RECALIBRATION) -> Validation:
    """Cross-validate the whole procedure; ``data`` must have enough ratings and counsellors."""
    rated = data.rows(~data.disputed)
    predicted = np.array(rated.own)
    chosen = choose_labels(rated.own, list(data.offsets))
    choices: list[str] = []
    for held_out in folds(data.group, rated_groups=rated.group):
        inside = np.isin(rated.group, held_out)
        if not inside.any():
            continue
        learnt = learn(data.rows(~np.isin(data.group, held_out)), method)
        choices.append(learnt.choice.words)
        some = rated.rows(inside)
        predicted[inside] = learnt.fit.predict(some)
        chosen[inside] = choose_labels(predicted[inside], list(learnt.offsets))
    before, after = log_loss(rated.own, rated.target), log_loss(predicted, rated.target)
    gold = rated.target.argmax(axis=-1)
    own = choose_labels(rated.own, list(data.offsets))
    tables = [confusions(gold, given, rated.group, len(data.labels)) for given in (own, chosen)]
    kappas = [float(kappa(table.sum(axis=0), ordered=data.ordered)) for table in tables]
    return Validation(
        ratings=len(rated),
        blind=int(rated.blind.sum()),
        counsellors=len(np.unique(rated.group)),
        log_loss=(float(before.mean()), float(after.mean())),
        log_loss_difference=clustered_mean(after - before, rated.group),
        kappa=(kappas[0], kappas[1]),
        kappa_difference=kappa_difference(tables[0], tables[1], ordered=data.ordered),
        agreement=kappa_interval(tables[1], ordered=data.ordered),
        rank=_rank(predicted, gold, rated),
        choices=tuple(choices),
        predicted=predicted,
        labels=chosen,
    )


def _rank(predicted: Floats, gold: Ints, rated: HeadData) -> Estimate:
    """Rank correlation of ratings with the expected level; none for three or more bare labels."""
    labels = len(rated.labels)
    if not rated.ordered and labels > 2:
        return Estimate(float("nan"), float("nan"), float("nan"))
    return rank_correlation(predicted @ np.arange(labels), gold, rated.group)
