"""Pages about counsellors: list, page, development, goals."""

__all__ = [
    "counsellor",
    "counsellor_list",
    "development",
    "goals",
]
