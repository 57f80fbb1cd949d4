"""Commands that run processes: worker, web, notifier, demo, doctor."""

__all__ = [
    "ask",
    "bench",
    "child_processes",
    "doctor",
    "drift",
    "history",
    "interrupts",
    "notify",
    "up",
    "watch",
    "web",
    "worker",
]
