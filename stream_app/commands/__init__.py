"""Implementation of the ``rapport`` commands; ``stream_app.cli`` parses their arguments."""

__all__ = [
    "events",
    "records",
    "results",
    "rules",
    "service",
]
