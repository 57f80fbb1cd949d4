"""Reimplementations of published methods, for comparison."""

__all__ = [
    "bi_encoder",
    "fine_tuning",
    "folds",
    "frozen_levels",
    "instruction_seq2seq",
    "micromodels",
    "results",
    "resumable",
    "sentence_vectors",
    "window_classifier",
]
