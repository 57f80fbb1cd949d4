"""Feedback to a counsellor: composed from scores, and read from the store.

``composition`` and ``words`` are pure, like the core; ``reading`` takes the turns from the store.
"""

__all__ = ["composition", "reading"]
