"""Benchmarks of Rapport and its alternatives: ``python -m benchmarks``."""
