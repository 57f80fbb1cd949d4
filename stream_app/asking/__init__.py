"""Asks a language model the ``asked`` questions of the scorecards about ended sessions.

Start at ``asker.Asker`` (one session) and ``rounds.AskingRounds`` (the process). Only
``chat_endpoint`` sends text away, and only ``asker`` uses it.
"""

__all__ = ["asker", "chat_endpoint", "rounds", "trial"]
