"""Findings from stored scores: exports, feedback, agreement, trends, analyses as files.

The command line and the web process both use it; it knows neither.
"""

__all__ = [
    "agreement",
    "agreement_words",
    "analysis_files",
    "analysis_runs",
    "blind_rating",
    "calibration_report",
    "exports",
    "feedback",
    "offered_measures",
    "proposal_agreement",
    "review_agreement",
    "trends",
]
