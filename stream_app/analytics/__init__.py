"""Longitudinal analytics: reporting views, roll-ups, and analyses with one module per question.

Views and roll-ups need the service alone; the analyses need the extra ``analytics`` (pandas,
statsmodels). Start at ``questions.answer`` for the analyses and at ``schema.upgrade`` for
the views; ``simulator`` makes platforms with known answers.
"""

__all__ = [
    "archive",
    "archive_pseudonyms",
    "arrow_rows",
    "associations",
    "attributes",
    "columns",
    "dialects",
    "drift",
    "expressed_perceived",
    "fact_reader",
    "fairness",
    "frames",
    "head_labels",
    "heads",
    "marked_days",
    "over_time",
    "pairs",
    "questions",
    "reference",
    "result",
    "rollup_source",
    "rollups",
    "schema",
    "service_levels",
    "shown",
    "shown_curves",
    "simulated_store",
    "simulator",
    "views",
]
