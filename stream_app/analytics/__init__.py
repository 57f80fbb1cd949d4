"""Longitudinal analytics: reporting views, roll-ups, and analyses with one module per question.

Views and roll-ups need the service alone; the analyses need the extra ``analytics`` (pandas,
statsmodels, plotly). Start at ``questions.answer`` for the analyses and at ``schema.upgrade`` for
the views; ``simulator`` makes platforms with known answers.
"""

__all__ = [
    "attributes",
    "columns",
    "extra",
    "frames",
    "heads",
    "questions",
    "reference",
    "result",
    "rollups",
    "schema",
    "simulated_store",
    "simulator",
    "views",
]
