"""Simulated platforms with known answers, and how often the analyses find them."""

__all__ = [
    "simulated_store",
    "simulator",
]
