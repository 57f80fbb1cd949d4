"""Distil a trained model into a smaller one: `python -m models.distil --help`."""

__all__ = ["turns"]
