"""What Rapport costs, side by side with what else could be run: ``python -m benchmarks``."""
