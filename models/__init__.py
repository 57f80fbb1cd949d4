"""PyTorch models of expressed empathy: data, training, calibration and evaluation."""

__all__ = [
    "adaptation",
    "batches",
    "bundle",
    "calibrate",
    "card",
    "data",
    "encoder",
    "evaluate",
    "head_graph",
    "heads",
    "labels",
    "losses",
    "multitask",
    "onnx_model",
    "perceived",
    "reader",
    "resampling",
    "train",
    "turn_features",
]
