"""Live events: from Kafka topics to the browsers that may see them, and back."""

__all__ = [
    "health",
    "intervention_outbox",
    "live_hub",
    "log_ends",
    "publisher",
    "topic_reader",
]
