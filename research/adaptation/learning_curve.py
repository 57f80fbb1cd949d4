"""Runs the adaptation on growing numbers of simulated ratings, and measures it on unseen turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch

from research.adaptation.low_rank import LOW_RANK, VectorData
from research.adaptation.platform import ScoredPlatform
from research.adaptation.raters import HEAD, RATERS, by_counsellor, draw
from research.adaptation.task_inputs import TaskInputs
from stream_app.adaptation.choosing import RECALIBRATION, Method, learn
from stream_app.adaptation.crossvalidation import validate
from stream_app.adaptation.estimates import kappa
from stream_app.adaptation.fitting import Floats, Ints, log_loss
from stream_app.inference.bundles.calibration import choose_labels

SIZES: Final = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
ADAPTER_SIZES: Final = (64, 256, 1024, 2048)
METHODS: Final[dict[str, Method[Any, Any]]] = {"recalibration": RECALIBRATION, "adapter": LOW_RANK}
PAYS: Final = 0.8
"""Share of the platforms that must promote a bundle before adapting is said to pay."""


@dataclass(frozen=True)
class Run:
    """One platform: whether the gate promoted, and the effect on unseen turns.

    `loss` and `kappa` are differences (bundle in force after the gate - shipped), 0 if none was
    promoted; `attainable`: the log-loss difference of a bundle that knows the raters'
    probabilities. `method`: a name of `METHODS`.
    """

    raters: str
    ratings: int
    seed: int
    promoted: bool
    loss: float
    kappa: float
    attainable: float
    method: str = "recalibration"


def simulate(
    platform: ScoredPlatform,
    raters: str,
    ratings: int,
    seed: int,
    method: str = "recalibration",
) -> Run:
    """One platform with this number of rated turns, drawn at random; equal for all methods."""
    rng = np.random.default_rng([seed, ratings, list(RATERS).index(raters)])
    truth = RATERS[raters](platform)
    truth = by_counsellor(truth, platform.counsellor, rng)
    labels = draw(truth, rng)
    order = rng.permutation(len(labels))
    rated, unseen = order[:ratings], order[ratings:]
    data = _data(platform, rated, labels[rated])
    learnt = learn(data, METHODS[method])
    promoted = learnt.choice.candidate is not None and validate(data, METHODS[method]).passes
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
        method=method,
    )


def _data(platform: ScoredPlatform, rows: Ints, labels: Ints) -> VectorData:
    found = {name: values[rows] for name, values in platform.probabilities.items()}
    target: Floats = np.eye(3)[labels]
    nothing = np.zeros(len(rows), dtype=bool)
    return VectorData(
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
        task=platform.task,
        inputs=TaskInputs(*(part[torch.from_numpy(rows)] for part in platform.inputs)),
    )


def _kappa(gold: Ints, given: Ints) -> float:
    table = np.zeros((3, 3))
    np.add.at(table, (gold, given), 1.0)
    return float(kappa(table, ordered=True))
