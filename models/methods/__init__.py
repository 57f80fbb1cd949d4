"""Reimplementations of published methods, for comparison."""

__all__ = ["micromodels"]
