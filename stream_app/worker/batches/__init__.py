"""A batch from record to committed scores. Start at ``processor.BatchProcessor``."""

__all__ = [
    "broker_clock",
    "commits",
    "lane",
    "metrics",
    "outgoing",
    "processor",
    "progress",
    "record_decoder",
    "session_cache",
]
