"""The wire contract: typed events in (``events``) and out (``scores``), and their schemas.

Start at ``events.decode`` and ``scores.TurnScore``.
"""

__all__ = ["cloudevents", "events", "schema", "scores"]
