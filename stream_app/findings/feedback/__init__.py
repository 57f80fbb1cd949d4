"""Feedback to counsellors after a session, composed from the stored scores.

``composition``, ``judgements``, ``turns``, ``sentences`` and ``phrasings`` are pure, like the core;
``loading`` and ``turn_loading`` read turns from the store.
"""

__all__ = ["composition", "judgements", "loading", "turn_loading", "turns"]
