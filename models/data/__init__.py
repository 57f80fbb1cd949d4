"""Loaders of the public corpora, all returning the same conversation type."""

from pathlib import Path

from models.data import annomi, empathetic_exchanges, empathetic_intents, epitome, esconv
from models.data.corpora import Conversation, MissingCorpusError, Turn, resolve_data_dir

__all__ = [
    "Conversation",
    "MissingCorpusError",
    "Turn",
    "annomi",
    "contrast",
    "corpora",
    "dialogues",
    "empathetic_exchanges",
    "epitome",
    "esconv",
    "load_corpora",
    "load_for_command",
    "phrases",
    "rated_sessions",
    "split",
]


def load_corpora(data_dir: Path) -> list[Conversation]:
    """Load every labelled conversation of the five corpora, in file order."""
    return [
        *epitome.load(data_dir),
        *esconv.load(data_dir),
        *annomi.load(data_dir),
        *empathetic_intents.load(data_dir),
        *empathetic_exchanges.load(data_dir),
    ]


def load_for_command(data_dir: Path | None) -> list[Conversation]:
    """As `load_corpora`, from the given or default folder; exits if a file is missing."""
    try:
        return load_corpora(resolve_data_dir(data_dir))
    except MissingCorpusError as problem:
        raise SystemExit(f"error: {problem}") from problem
