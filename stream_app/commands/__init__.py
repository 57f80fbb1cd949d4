"""Implementation of the ``rapport`` commands; ``stream_app.cli`` parses their arguments."""

__all__ = [
    "analyse",
    "bench",
    "child_processes",
    "consent",
    "dead_letters",
    "doctor",
    "erase",
    "event_files",
    "hold",
    "keys",
    "notify",
    "people",
    "replay",
    "rule_backtest",
    "rules",
    "score",
    "up",
    "watch",
    "web",
    "worker",
]
