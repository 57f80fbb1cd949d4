"""PyTorch models of expressed empathy: data, training, calibration and evaluation."""

__all__ = [
    "batches",
    "calibrate",
    "data",
    "encoder",
    "evaluate",
    "heads",
    "labels",
    "multitask",
    "perceived",
    "resampling",
    "turn_features",
]
