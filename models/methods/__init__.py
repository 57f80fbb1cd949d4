"""Reimplementations of published methods, for comparison."""

__all__ = ["bi_encoder", "folds", "frozen_levels", "micromodels", "results", "sentence_vectors"]
