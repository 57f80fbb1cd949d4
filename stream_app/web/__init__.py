"""The console and the API: a FastAPI application over the store, with live events from Kafka.

Start at ``app.create``; ``api`` and ``console`` are its two halves. Below them: ``ingest``,
``sign_in``, ``http`` (what concerns any request) and ``live`` (events from Kafka to browsers).
"""

__all__ = [
    "api",
    "app",
    "console",
    "http",
    "ingest",
    "live",
    "practice_model",
    "services",
    "sign_in",
    "warm_up",
]
