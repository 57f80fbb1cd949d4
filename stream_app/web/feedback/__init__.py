"""Feedback to counsellors after a session, composed from the stored scores.

``composition`` and ``sentences`` are pure, like the core; ``loading`` reads turns from the store.
"""

__all__ = ["composition", "loading"]
