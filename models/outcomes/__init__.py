"""Outcome risks, learned from judgements of whole sessions (`docs/outcomes.md`).

`python -m models.outcomes evaluate` measures them on unseen folds, `fit` writes the models into a
bundle, `ratings` correlates the perceived heads with listeners' ratings.
"""

__all__ = ["folds", "labels"]
