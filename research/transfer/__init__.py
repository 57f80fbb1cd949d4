"""Transfer between empathy tasks by stacked adapters (Lahnala et al., sections 3-5)."""
