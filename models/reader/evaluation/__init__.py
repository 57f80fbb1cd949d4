"""Figures of the reader on data that it was not trained on, and its page in docs."""

__all__ = [
    "baselines",
    "ceilings",
    "crisis_kinds",
    "elsewhere",
    "evaluate",
    "evaluated",
    "index",
    "page",
    "speed",
]
