"""Pages of analyses, teams and exports, and the printed reports."""

__all__ = [
    "analyses",
    "analytics",
    "exports",
    "figures",
    "report",
    "report_page",
    "summary",
    "teams",
]
