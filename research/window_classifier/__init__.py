"""An encoder over a concatenated window of turns (Xu & Jiang 2024, section 4.2)."""

__all__ = ["design"]
