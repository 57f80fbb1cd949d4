"""Reporting views in SQL, one dialect each. Start at ``schema.upgrade``."""

__all__ = [
    "columns",
    "dialects",
    "heads",
    "hidden_cells",
    "rollup_source",
    "schema",
    "shown",
]
