"""Which turns the detector of languages leaves unscored: ``python -m benchmarks.languages``."""
