"""EPITOME's bi-encoder with attention (Sharma et al. 2020, section 5.2), and its ablations."""

__all__ = ["design"]
