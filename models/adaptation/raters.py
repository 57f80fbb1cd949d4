"""Simulated raters of emotional reactions, who differ from the bundle by a known rule.

    same        the bundle's probabilities are right for them
    severity    every step up costs one log-odds more
    threshold   half of what the bundle calls weak, they call none
    meaning     half of the time they judge another thing: reassurance is strong, a reflection of
                feelings is weak (the bundle's strategies), anything else is none

All but `same` are drawn with the labels' probabilities [n, 3] below. Every counsellor is also
judged a little differently: a normal deviation of 0.3 log-odds in each step, so that turns of one
counsellor are correlated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from stream_app.adaptation.fitting import Floats, Ints
from stream_app.inference.recalibration import EPSILON, softmax

HEAD: Final = "emotional_reactions"
SEVERITY: Final = 1.0
MOVED: Final = 0.5
MIXED: Final = 0.5
COUNSELLOR_SPREAD: Final = 0.3
REASSURANCE, REFLECTION = "affirmation_and_reassurance", "reflection_of_feelings"

Probabilities = Mapping[str, Floats]


def same(found: Probabilities, strategies: list[str]) -> Floats:  # noqa: ARG001  # one signature
    """The bundle's own probabilities."""
    return found[HEAD]


def severity(found: Probabilities, strategies: list[str]) -> Floats:  # noqa: ARG001
    """Weak and strong are rarer by one and two times `SEVERITY`."""
    return softmax(np.log(found[HEAD] + EPSILON) - SEVERITY * np.arange(3))


def threshold(found: Probabilities, strategies: list[str]) -> Floats:  # noqa: ARG001
    """`MOVED` of the probability of weak goes to none."""
    moved = MOVED * found[HEAD][:, 1]
    return found[HEAD] + np.stack([moved, -moved, np.zeros_like(moved)], axis=1)


def meaning(found: Probabilities, strategies: list[str]) -> Floats:
    """A mixture with levels that follow the strategy head."""
    strategy = found["strategy"]
    strong = strategy[:, strategies.index(REASSURANCE)]
    weak = strategy[:, strategies.index(REFLECTION)]
    other = np.stack([1.0 - weak - strong, weak, strong], axis=1)
    return (1.0 - MIXED) * found[HEAD] + MIXED * other


RATERS: Final[dict[str, Callable[[Probabilities, list[str]], Floats]]] = {
    "same": same,
    "severity": severity,
    "threshold": threshold,
    "meaning": meaning,
}


def by_counsellor(truth: Floats, counsellor: Ints, rng: np.random.Generator) -> Floats:
    """The raters' probabilities with the deviation of each turn's counsellor."""
    deviations = rng.normal(0.0, COUNSELLOR_SPREAD, int(counsellor.max()) + 1)
    return softmax(np.log(truth + EPSILON) + deviations[counsellor, None] * np.arange(3))


def draw(truth: Floats, rng: np.random.Generator) -> Ints:
    """One label [n] for each row of probabilities."""
    below = rng.random(len(truth))[:, None] > truth.cumsum(axis=1)
    return np.asarray(np.minimum(below.sum(axis=1), truth.shape[1] - 1))
