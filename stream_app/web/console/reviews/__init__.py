"""Pages of reviews and of samples that two people rate."""

__all__ = [
    "calibration",
    "review_queue",
    "reviewing",
]
