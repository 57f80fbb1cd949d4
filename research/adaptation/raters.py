"""Simulated raters of emotional reactions, who differ from the bundle by a known rule.

    same        the bundle's probabilities are right for them
    severity    every step up costs one log-odds more
    threshold   half of what the bundle calls weak, they call none
    meaning     half of the time they judge another thing: reassurance is strong, a reflection of
                feelings is weak (the bundle's strategies), anything else is none
    wording     half of the time they go by words that no head measures: a named feeling is strong,
                addressing the client is weak (`platform.named`), anything else is none

All but `same` are drawn with the labels' probabilities [n, 3] below. Every counsellor is also
judged a little differently: a normal deviation of 0.3 log-odds in each step, so that turns of one
counsellor are correlated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from research.adaptation.platform import ScoredPlatform
from stream_app.adaptation.fitting import Floats, Ints
from stream_app.inference.bundles.recalibration import EPSILON, softmax

HEAD: Final = "emotional_reactions"
SEVERITY: Final = 1.0
MOVED: Final = 0.5
MIXED: Final = 0.5
COUNSELLOR_SPREAD: Final = 0.3
REASSURANCE, REFLECTION = "affirmation_and_reassurance", "reflection_of_feelings"


def same(platform: ScoredPlatform) -> Floats:
    """The bundle's own probabilities."""
    return platform.probabilities[HEAD]


def severity(platform: ScoredPlatform) -> Floats:
    """Weak and strong are rarer by one and two times `SEVERITY`."""
    return softmax(np.log(platform.probabilities[HEAD] + EPSILON) - SEVERITY * np.arange(3))


def threshold(platform: ScoredPlatform) -> Floats:
    """`MOVED` of the probability of weak goes to none."""
    moved = MOVED * platform.probabilities[HEAD][:, 1]
    return platform.probabilities[HEAD] + np.stack([moved, -moved, np.zeros_like(moved)], axis=1)


def meaning(platform: ScoredPlatform) -> Floats:
    """A mixture with levels that follow the strategy head."""
    strategy, strategies = platform.probabilities["strategy"], platform.labels["strategy"]
    strong = strategy[:, strategies.index(REASSURANCE)]
    weak = strategy[:, strategies.index(REFLECTION)]
    other = np.stack([1.0 - weak - strong, weak, strong], axis=1)
    return (1.0 - MIXED) * platform.probabilities[HEAD] + MIXED * other


def wording(platform: ScoredPlatform) -> Floats:
    """A mixture with levels that follow the words."""
    return (1.0 - MIXED) * platform.probabilities[HEAD] + MIXED * np.eye(3)[platform.naming]


RATERS: Final[dict[str, Callable[[ScoredPlatform], Floats]]] = {
    "same": same,
    "severity": severity,
    "threshold": threshold,
    "meaning": meaning,
    "wording": wording,
}


def by_counsellor(truth: Floats, counsellor: Ints, rng: np.random.Generator) -> Floats:
    """The raters' probabilities with the deviation of each turn's counsellor."""
    deviations = rng.normal(0.0, COUNSELLOR_SPREAD, int(counsellor.max()) + 1)
    return softmax(np.log(truth + EPSILON) + deviations[counsellor, None] * np.arange(3))


def draw(truth: Floats, rng: np.random.Generator) -> Ints:
    """One label [n] for each row of probabilities."""
    below = rng.random(len(truth))[:, None] > truth.cumsum(axis=1)
    return np.asarray(np.minimum(below.sum(axis=1), truth.shape[1] - 1))
