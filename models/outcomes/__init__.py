"""Outcome risks: what people said of whole sessions, learned and measured (`docs/outcomes.md`).

`python -m models.outcomes evaluate` measures them on unseen folds, `fit` writes the models into a
bundle, `ratings` correlates the perceived heads with what listeners said.
"""
