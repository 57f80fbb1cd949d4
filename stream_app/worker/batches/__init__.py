"""A batch from record to committed scores. Start at ``processor.BatchProcessor``."""

__all__ = [
    "bisection",
    "broker_clock",
    "dead_letters",
    "metrics",
    "processor",
    "record_decoder",
]
