"""Pages that list: the wall, the inbox of alerts, past sessions."""

__all__ = [
    "inbox",
    "past_sessions",
    "wall",
]
