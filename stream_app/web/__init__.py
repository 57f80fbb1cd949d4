"""The console and the API: FastAPI over the store; live events come from the topics.

Start at ``app.create``; ``api`` and ``console`` are its two halves.
"""

__all__ = [
    "app",
    "auth",
    "connections",
    "health",
    "live",
    "metrics",
    "publishing",
    "services",
    "topics",
]
