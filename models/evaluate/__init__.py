"""Evaluation on held-out turns: predictions, metrics and reports."""

__all__ = [
    "bundle_comparison",
    "document",
    "exported",
    "folds",
    "low_empathy",
    "metrics",
    "miti",
    "outcomes",
    "plots",
    "predict",
    "published",
    "report",
    "sections",
    "tables",
]
