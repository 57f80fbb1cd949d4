"""The Kafka side: a Faust app around the pure pipeline.

Start at ``agents.TurnAgent``; ``processor`` is the part without Kafka.
"""

__all__ = ["agents", "app", "broker", "health", "metrics", "processor", "rule_loading", "topics"]
