"""One session's state. Start at ``session.Session``; ``ports`` has its dependencies."""

__all__ = [
    "alerting",
    "approaches",
    "batch",
    "consent",
    "earlier_layouts",
    "environment",
    "origin",
    "past",
    "ports",
    "restrictions",
    "session",
    "session_state",
    "turn_languages",
]
