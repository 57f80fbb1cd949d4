"""Sums by day and counsellor, kept up to date. Start at ``rollups.update``."""

__all__ = [
    "rollups",
]
