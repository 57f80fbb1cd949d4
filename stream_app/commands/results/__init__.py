"""Commands that print or write findings: analyses, reports, exports, reviews."""

__all__ = [
    "analyse",
    "archive",
    "drift",
    "export",
    "report",
    "reviews",
    "studies",
]
