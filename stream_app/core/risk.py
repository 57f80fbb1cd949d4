"""The names of earlier releases, until nothing imports them: see ``core.outcomes``."""

from typing import Any

from msgspec import field

from stream_app.core.aggregates import Summary
from stream_app.core.outcomes import USUAL_TURNS, OutcomeModel, features, log_odds, probability

__all__ = ["USUAL_TURNS", "RiskModel", "features", "log_odds", "low_empathy_risk"]


class RiskModel(OutcomeModel, frozen=True, forbid_unknown_fields=True, dict=True):
    """The one risk model of bundles 1.x, with the thresholds of its alert rule."""

    intercept: float
    weights: dict[str, float]
    min_counsellor_turns: int = 3
    enter: float = 0.7
    exit: float = 0.5
    domain: str = "peer-support"
    alerts: list[dict[str, Any]] = field(default_factory=list)
    turn_weights: dict[str, float] = field(default_factory=dict)
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)
    closing: "RiskModel | None" = None


def low_empathy_risk(
    model: RiskModel | None, summary: Summary, *, ended: bool = False
) -> float | None:
    """The risk in [0, 1], or None before ``min_counsellor_turns`` or without a model."""
    if model is None or summary.counsellor_turns < model.min_counsellor_turns:
        return None
    chosen = (ended and model.closing) or model
    return probability(log_odds(chosen, features(summary)))
