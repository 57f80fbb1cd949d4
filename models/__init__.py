"""PyTorch models of expressed empathy: data, training, calibration and evaluation."""

__all__ = [
    "batches",
    "bundle",
    "calibrate",
    "card",
    "data",
    "encoder",
    "evaluate",
    "heads",
    "labels",
    "losses",
    "multitask",
    "onnx_model",
    "perceived",
    "resampling",
    "train",
    "turn_features",
]
