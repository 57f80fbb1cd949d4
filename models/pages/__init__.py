"""docs/evaluation.md and its sections, from result files. Start at ``document``."""

__all__ = [
    "document",
    "low_empathy",
    "miti",
    "outcomes",
    "plots",
    "published",
    "report",
    "sections",
    "tables",
]
