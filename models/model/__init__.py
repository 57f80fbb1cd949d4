"""Networks and their inputs: encoder, heads, losses, ONNX graphs."""

__all__ = [
    "batches",
    "encoder",
    "frozen",
    "head_graph",
    "heads",
    "losses",
    "multiple_instance",
    "multitask",
    "onnx_model",
]
