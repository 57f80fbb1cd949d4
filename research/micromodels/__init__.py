"""Micromodels (Lee et al. 2023, section 3) and what they show of their decisions."""

__all__ = ["model", "scorer"]
