"""Random, reproducible faults against the real service, followed by a check of the invariant."""
