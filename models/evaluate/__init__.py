"""Evaluation on held-out turns: predictions, metrics and reports."""

__all__ = [
    "bundle_comparison",
    "document",
    "folds",
    "metrics",
    "miti",
    "outcomes",
    "predict",
    "published",
    "report",
    "sections",
    "tables",
]
