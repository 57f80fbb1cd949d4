"""The Kafka consumer: a Faust app around the pure pipeline.

Start at ``agents.TurnAgent``; ``processor`` is independent of Kafka.
"""

__all__ = [
    "agents",
    "app",
    "broker",
    "bundle_loading",
    "codecs",
    "dead_letters",
    "encoded_scores",
    "erasing",
    "health",
    "intent_loading",
    "left_bundles",
    "metrics",
    "processor",
    "publishing",
    "record_decoder",
    "refusal",
    "rule_loading",
    "schema_registry",
    "topics",
]
