"""Synthetic sessions of known empathy, and the fit of the empathy index evaluated on them."""

__all__ = ["benchmark", "bundle_scores", "fit"]
