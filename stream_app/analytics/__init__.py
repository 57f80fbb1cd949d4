"""Longitudinal analytics: reporting views, roll-ups, and analyses with one module per question.

``views`` and ``rollups`` need the service alone, ``archive`` needs pyarrow, and ``questions`` the
extra ``analytics`` (pandas, statsmodels). Start at ``questions`` for the analyses and at
``views`` for the views.
"""

__all__ = [
    "archive",
    "questions",
    "rollups",
    "views",
]
