"""Agreement of coders: experts, a language model and Rapport on the same items."""

__all__ = ["comparison", "corpora", "labelled_file", "measures", "ratings", "report", "tables"]
