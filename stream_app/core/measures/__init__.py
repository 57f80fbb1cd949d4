"""Measures of turns and sessions: heads, aggregates, empathy, crisis, MITI."""

__all__ = [
    "addressing",
    "aggregates",
    "baselines",
    "catalogue",
    "crisis",
    "empathy",
    "empathy_words",
    "exchanges",
    "heads",
    "intents",
    "miti",
    "outcomes",
    "perceived",
    "reliable_change",
    "turn_evidence",
    "voices",
    "watch",
    "window",
]
