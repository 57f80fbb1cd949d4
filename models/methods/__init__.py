"""Reimplementations of published methods, for comparison."""

__all__ = [
    "bi_encoder",
    "folds",
    "frozen_levels",
    "instruction_seq2seq",
    "micromodels",
    "results",
    "resumable",
    "sentence_vectors",
    "window_classifier",
]
