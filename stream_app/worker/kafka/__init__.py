"""The Faust app, its consumer and producer, topics and the security of connections."""

__all__ = [
    "adaptive_batching",
    "app",
    "broker",
    "codecs",
    "consumer",
    "publishing",
    "refusal",
    "topics",
    "watermarks",
]
