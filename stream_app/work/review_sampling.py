"""Which sessions a sample reviews, and who reviews them: pure, and reproducible by its seed.

Some sessions are drawn at random, all equally likely. Others are drawn one after the other from the
rest, each time with a probability proportional to the low-empathy risk among the sessions that are
left (by the keys of Efraimidis and Spirakis 2006, https://doi.org/10.1016/j.ipl.2005.11.003). A
session without a risk, or with a risk of 0, is not drawn by risk. Of all drawn sessions, a share is
chosen at random for double review.
"""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from stream_app.store.work.reviews import Origin


class Drawn(Struct, frozen=True):
    """A drawn session with its reviewers: two in a double review."""

    session_id: str
    origin: Origin
    reviewers: tuple[str, ...]


def draw(
    risks: Mapping[str, float | None],
    reviewers: Sequence[str],
    *,
    at_random: int,
    by_risk: int,
    double: float,
    seed: int,
) -> list[Drawn]:
    """Draw sessions for review; fewer than asked for if there are not enough.

    Args:
        risks: the low-empathy risk by session.
        reviewers: who reviews; two or more for double reviews.
        at_random: number of sessions to draw with equal probabilities.
        by_risk: number of further sessions to draw by their risk.
        double: share of the drawn sessions, from 0 to 1, that two people review.
        seed: the same seed and sessions give the same result.
    """
    rng = random.Random(seed)  # noqa: S311  # reproducible, not secret
    everyone = sorted(risks)
    first = rng.sample(everyone, min(at_random, len(everyone)))
    rest = [name for name in everyone if name not in set(first)]
    second = _by_weight(rng, {name: risks[name] or 0.0 for name in rest}, by_risk)
    chosen = [(name, Origin.RANDOM) for name in first] + [(name, Origin.RISK) for name in second]
    names = [name for name, _ in chosen]
    doubled = set(rng.sample(names, _share(double, len(names)))) if len(reviewers) > 1 else set()
    order = sorted(reviewers)
    rng.shuffle(order)
    burden: Counter[str] = Counter()
    return [
        Drawn(name, origin, _least_burdened(order, burden, 2 if name in doubled else 1))
        for name, origin in chosen
    ]


def _least_burdened(order: Sequence[str], burden: Counter[str], count: int) -> tuple[str, ...]:
    """The reviewers with the fewest sessions so far, who get one more."""
    chosen = sorted(order, key=burden.__getitem__)[:count]
    burden.update(chosen)
    return tuple(chosen)


def _by_weight(rng: random.Random, weights: Mapping[str, float], size: int) -> list[str]:
    """Draw without replacement: the largest keys u**(1/w), compared by their logarithms."""
    keys = {
        name: math.log(1.0 - rng.random()) / weight
        for name, weight in sorted(weights.items())
        if weight > 0
    }
    return sorted(keys, key=lambda name: -keys[name])[:size]


def _share(share: float, of: int) -> int:
    """The nearest whole number, at least one session if the share is above 0.

    >>> _share(0.2, 10), _share(0.2, 2), _share(0.0, 9), _share(0.2, 0)
    (2, 1, 0, 0)
    """
    return min(of, max(1, round(share * of))) if share > 0 else 0
