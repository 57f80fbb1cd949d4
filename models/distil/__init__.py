"""Distil a trained model into a smaller one: `python -m models.distil --help`."""
