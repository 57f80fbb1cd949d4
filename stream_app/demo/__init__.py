"""The demonstration: the whole service on one machine, with played sessions and synthetic history.

Start at ``up``; ``simulator`` draws platforms with known answers, which tests and
``benchmarks.coverage`` use, too.
"""

__all__ = [
    "history",
    "played_sessions",
    "simulated_store",
    "simulator",
    "speed",
    "up",
]
