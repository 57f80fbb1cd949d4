"""Processes that run until a signal stops them, and what starts and checks them.

``worker``, ``web``, ``notifier`` and ``asking`` are those of a deployment; ``watch`` shows their
scores in a terminal and ``doctor`` checks an installation.
"""

__all__ = [
    "asking",
    "child_processes",
    "doctor",
    "interrupts",
    "notifier",
    "watch",
    "web",
    "worker",
]
