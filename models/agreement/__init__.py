"""Agreement of coders: experts, a language model and Rapport on the same items."""

__all__ = ["comparison", "labelled_file", "measures", "ratings", "tables"]
