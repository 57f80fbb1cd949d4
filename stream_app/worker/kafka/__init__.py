"""The Faust app, its consumer and producer, topics and the security of connections."""

__all__ = [
    "adaptive_batching",
    "app",
    "broker",
    "codecs",
    "consumer",
    "dead_letters",
    "publisher",
    "publishing",
    "refusal",
    "topics",
    "watermarks",
]
