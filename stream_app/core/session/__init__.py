"""One session's state. Start at ``session.Session``; ``ports`` has its dependencies."""

__all__ = [
    "alerting",
    "approaches",
    "batch",
    "consent",
    "environment",
    "origin",
    "past",
    "ports",
    "restrictions",
    "session",
    "session_state",
    "state_layout",
    "turn_languages",
]
