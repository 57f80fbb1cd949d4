"""Plain means of expected EPITOME levels: the baseline of the empathy index.

Every counsellor turn has equal weight; there are no opportunities, prior, reference or change of
level. A turn's value is its expected total of the three mechanisms, 0-6, from the same calibrated
probabilities as the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS, TurnScore
from stream_app.core.measures.empathy import counsellor_features

SPANS: dict[str, int | None] = {"all turns": None, "last five": 5, "last three": 3}
"""By name, the number of latest counsellor turns in a mean; None: all of them."""


def plain_means(scores: Iterable[TurnScore]) -> tuple[Mapping[str, float], ...]:
    """The means by span after each counsellor turn, and after the session's end.

    `scores` in the order of the service, provisional before final: a final score replaces the
    turn's provisional one.
    """
    totals: dict[int, float] = {}
    found = []
    for score in scores:
        if score.role is Role.COUNSELLOR:
            new = score.seq not in totals
            features = counsellor_features(score)
            totals[score.seq] = 2.0 * sum(features[name] for name in MECHANISMS)
            if new:
                found.append(_means(totals))
    return (*found, _means(totals)) if totals else ()


def _means(totals: Mapping[int, float]) -> dict[str, float]:
    values = list(totals.values())
    kept = {name: values if span is None else values[-span:] for name, span in SPANS.items()}
    return {name: sum(some) / len(some) for name, some in kept.items()}
