"""Low-resource empathy from contrast between corpora (Wu et al. 2021)."""
