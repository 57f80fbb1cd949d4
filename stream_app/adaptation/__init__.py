"""Fits a bundle to an installation's own ratings, disputes and outcomes; needs scipy."""

__all__ = [
    "adapting",
    "choosing",
    "comparison",
    "crossvalidation",
    "encoding",
    "estimates",
    "fitting",
    "head_results",
    "judged_vectors",
    "judgements",
    "new_bundle",
    "outcome_risks",
    "promotion",
    "references",
    "rescored",
    "thresholds",
]
