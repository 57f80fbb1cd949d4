"""Scoring with ONNX Runtime: bundle → tokeniser → batches → encoder → head → scores."""
