"""The Kafka consumer: a Faust app around the pure pipeline.

Start at ``agents.TurnAgent``. ``kafka`` is the only room that knows Faust and aiokafka,
``batches`` handles a batch and is independent of Kafka's clients, ``upkeep`` has what timers do.
"""

__all__ = [
    "agents",
    "batches",
    "kafka",
    "upkeep",
]
