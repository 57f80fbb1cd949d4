"""Tests whether a scorer uses context or only the response's wording (Lee et al., section 4.5)."""
