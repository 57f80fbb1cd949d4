"""Export a trained model to an ONNX bundle for the service."""
