"""One module per question. Start at ``questions.answer``."""

__all__ = [
    "associations",
    "attributes",
    "clustered",
    "drift",
    "expressed_perceived",
    "fairness",
    "frames",
    "head_labels",
    "marked_days",
    "over_time",
    "pairs",
    "questions",
    "result",
    "service_levels",
    "shown_curves",
]
