"""Tests whether a scorer uses context or only the response's wording (Lee et al., section 4.5)."""

__all__ = ["cases", "report", "scorers"]
