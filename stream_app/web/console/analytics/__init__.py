"""Pages of analyses, teams and exports, and the printed reports."""

__all__ = [
    "analyses",
    "analytics",
    "exports",
    "figures",
    "known_days",
    "report",
    "report_page",
    "summary",
    "teams",
]
