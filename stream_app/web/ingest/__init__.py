"""Events that are sent over HTTP: checked, limited to their sender, sent to Kafka."""

__all__ = [
    "ingest",
]
