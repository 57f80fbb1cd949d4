"""Changes of our own recipe: ablations, other encoders, pre-training on the corpora."""
