"""Reimplementations of published methods, for comparison."""
