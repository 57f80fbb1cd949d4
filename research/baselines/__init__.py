"""The simple methods: a frozen encoder, words alone, the most frequent level."""

__all__ = ["page", "word_scorers"]
