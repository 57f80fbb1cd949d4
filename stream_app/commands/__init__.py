"""What the ``rapport`` commands do; ``stream_app.cli`` only parses arguments."""

__all__ = [
    "bench",
    "child_processes",
    "dead_letters",
    "doctor",
    "erase",
    "event_files",
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
