"""Loaders of the public corpora, all giving the same small conversation type."""

from models.data.corpora import Conversation, MissingCorpusError, Turn, load_corpora

__all__ = ["Conversation", "MissingCorpusError", "Turn", "load_corpora"]
