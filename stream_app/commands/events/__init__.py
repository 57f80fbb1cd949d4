"""Commands over files of events and topics: score, replay, import, dead letters."""

__all__ = [
    "dead_letters",
    "event_files",
    "importing",
    "json_lines",
    "offline_batches",
    "past_of_file",
    "reading",
    "replay",
    "score",
]
