"""Commands that print or write findings: analyses, reports, exports, reviews."""

__all__ = [
    "analyse",
    "archive",
    "export",
    "report",
    "reviews",
    "studies",
]
