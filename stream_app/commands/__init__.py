"""What the ``rapport`` commands do; ``stream_app.cli`` only parses arguments."""

__all__ = [
    "bench",
    "children",
    "dead_letters",
    "doctor",
    "erase",
    "event_files",
    "notify",
    "people",
    "replay",
    "rule_trial",
    "rules",
    "score",
    "up",
    "watch",
    "web",
    "work",
]
