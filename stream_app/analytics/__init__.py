"""Longitudinal analyses of a platform: one module per question.

Needs the extra ``analytics`` (pandas, statsmodels, plotly); nothing here is imported by workers.
Start at ``questions.answer``; ``simulator`` makes platforms with known answers.
"""

__all__ = [
    "attributes",
    "extra",
    "frames",
    "questions",
    "result",
    "simulated_store",
    "simulator",
]
