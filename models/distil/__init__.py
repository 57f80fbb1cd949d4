"""A smaller model that says what a trained one says: `python -m models.distil --help`."""
