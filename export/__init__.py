"""Export of a trained model to an ONNX bundle that the service reads."""
