"""Evaluation on held-out turns: predictions, metrics, comparisons."""

__all__ = [
    "annomi_quality",
    "bundle_comparison",
    "choices",
    "exported",
    "folds",
    "metrics",
    "predict",
    "ratings",
    "replay",
    "resampling",
    "text_baseline",
    "trait_groups",
]
