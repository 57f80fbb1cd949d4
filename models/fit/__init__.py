"""Training and calibration. Start at ``train``."""

__all__ = [
    "calibrate",
    "distress",
    "optimisation",
    "perceived",
    "standardised",
    "train",
    "turn_features",
]
