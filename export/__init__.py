"""Export a trained model to an ONNX bundle for the service."""

__all__ = ["__main__", "parity"]
