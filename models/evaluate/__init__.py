"""Evaluation on held-out turns: predictions, metrics and reports."""
