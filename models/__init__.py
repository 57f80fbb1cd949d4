"""PyTorch models of expressed empathy: data, training, calibration and evaluation."""
