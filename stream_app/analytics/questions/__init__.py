"""One module per question. Start at ``questions.answer``."""

__all__ = [
    "associations",
    "attributes",
    "clustered",
    "drift",
    "drift_watch",
    "expressed_perceived",
    "fairness",
    "frames",
    "head_labels",
    "marked_days",
    "over_time",
    "pairs",
    "progress",
    "questions",
    "result",
    "service_levels",
    "shown_curves",
    "suppression",
]
