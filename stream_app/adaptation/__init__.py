"""Fits a bundle to an installation's own ratings, disputes and outcomes; needs scipy."""

__all__ = [
    "comparison",
    "crossvalidation",
    "fitting",
    "judgements",
    "new_bundle",
    "outcome_risks",
    "references",
    "rescored",
    "thresholds",
]
