"""Synthetic sessions of known empathy, and the fit of the empathy index evaluated on them."""

__all__ = []
