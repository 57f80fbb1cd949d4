"""Implementation of the ``rapport`` commands; ``stream_app.cli`` parses their arguments."""

__all__ = [
    "analyse",
    "bench",
    "child_processes",
    "dead_letters",
    "doctor",
    "erase",
    "event_files",
    "export",
    "keys",
    "notify",
    "people",
    "replay",
    "rule_backtest",
    "rules",
    "score",
    "studies",
    "up",
    "watch",
    "web",
    "worker",
]
