"""Crisis language of client turns: data, probe and evaluation (docs/crisis.md)."""

__all__ = ["turns"]
