"""Loaders of the public corpora, all returning the same conversation type."""

from pathlib import Path

from models.data.corpora import Conversation, MissingCorpusError, Turn, resolve_data_dir
from models.data.registry import load_corpora

__all__ = [
    "Conversation",
    "MissingCorpusError",
    "Turn",
    "annomi",
    "contrast",
    "corpora",
    "dialogues",
    "empathetic_exchanges",
    "empathetic_intents",
    "epitome",
    "esconv",
    "load_corpora",
    "load_for_command",
    "phrases",
    "rated_sessions",
    "registry",
    "split",
]


def load_for_command(data_dir: Path | None) -> list[Conversation]:
    """As `load_corpora`, from the given or default folder; exits if a file is missing."""
    try:
        return load_corpora(resolve_data_dir(data_dir))
    except MissingCorpusError as problem:
        raise SystemExit(f"error: {problem}") from problem
