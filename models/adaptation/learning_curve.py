"""Runs the adaptation on growing numbers of simulated ratings, and measures it on unseen turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from models.adaptation.platform import ScoredPlatform
from models.adaptation.raters import HEAD, RATERS, by_counsellor, draw
from stream_app.adaptation.choosing import RECALIBRATION, learn
from stream_app.adaptation.crossvalidation import validate
from stream_app.adaptation.estimates import kappa
from stream_app.adaptation.fitting import Floats, HeadData, Ints, log_loss
from stream_app.inference.scorer import choose_labels

SIZES: Final = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
PAYS: Final = 0.8
"""Share of the platforms that must promote a bundle before adapting is said to pay."""


@dataclass(frozen=True)
class Run:
    """One platform: whether the gate promoted, and the effect on unseen turns.

    `loss` and `kappa` are differences (bundle in force after the gate - shipped), 0 if none was
    promoted; `attainable`: the log-loss difference of a bundle that knows the raters'
    probabilities.
    """

    raters: str
    ratings: int
    seed: int
    promoted: bool
    loss: float
    kappa: float
    attainable: float


def simulate(platform: ScoredPlatform, raters: str, ratings: int, seed: int) -> Run:
    """One platform with this number of rated turns, drawn at random."""
    rng = np.random.default_rng([seed, ratings, list(RATERS).index(raters)])
    truth = RATERS[raters](platform.probabilities, platform.labels["strategy"])
    truth = by_counsellor(truth, platform.counsellor, rng)
    labels = draw(truth, rng)
    order = rng.permutation(len(labels))
    rated, unseen = order[:ratings], order[ratings:]
    data = _data(platform, rated, labels[rated])
    learnt = learn(data, RECALIBRATION)
    promoted = learnt.choice.candidate is not None and validate(data).passes
    rest = _data(platform, unseen, labels[unseen])
    before, levels = rest.own, choose_labels(rest.own, list(rest.offsets))
    after, new_levels = before, levels
    if promoted:
        after = learnt.fit.predict(rest)
        new_levels = choose_labels(after, list(learnt.offsets))
    expected = truth[unseen]
    shipped = log_loss(before, expected).mean()
    return Run(
        raters,
        ratings,
        seed,
        promoted,
        loss=float(log_loss(after, expected).mean() - shipped),
        kappa=_kappa(labels[unseen], new_levels) - _kappa(labels[unseen], levels),
        attainable=float(log_loss(expected, expected).mean() - shipped),
    )


def _data(platform: ScoredPlatform, rows: Ints, labels: Ints) -> HeadData:
    found = {name: values[rows] for name, values in platform.probabilities.items()}
    target: Floats = np.eye(3)[labels]
    nothing = np.zeros(len(rows), dtype=bool)
    return HeadData(
        head=HEAD,
        labels=tuple(platform.labels[HEAD]),
        ordered=True,
        offsets=platform.offsets[HEAD],
        probabilities=found,
        target=target,
        weight=np.ones(len(rows)),
        group=platform.counsellor[rows],
        disputed=nothing,
        blind=~nothing,
    )


def _kappa(gold: Ints, given: Ints) -> float:
    table = np.zeros((3, 3))
    np.add.at(table, (gold, given), 1.0)
    return float(kappa(table, ordered=True))
