"""The corpora: those that heads learn from, one entry each, and those that only lend contexts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from models.data import (
    annomi,
    dialogues,
    empathetic_exchanges,
    empathetic_intents,
    epitome,
    esconv,
)
from models.data.corpora import Conversation, Corpus


@dataclass(frozen=True)
class Source:
    """A corpus that heads learn from: its loader, and how often an epoch goes through it."""

    corpus: Corpus
    load: Callable[[Path], Iterable[Conversation]]
    repeats: int = 1


SOURCES: tuple[Source, ...] = (
    Source(epitome.CORPUS, epitome.load, repeats=2),
    Source(esconv.CORPUS, esconv.load),
    Source(annomi.CORPUS, annomi.load),
    Source(empathetic_intents.CORPUS, empathetic_intents.load),
    Source(empathetic_exchanges.CORPUS, empathetic_exchanges.load),
)
"""The first one sets how many steps an epoch has (`models.model.batches.epoch_steps`)."""

CONTEXTS = (dialogues.CHATS, dialogues.SERVICE)
"""Corpora that only lend turns."""
CORPORA = {corpus.name: corpus for corpus in (*(each.corpus for each in SOURCES), *CONTEXTS)}


def load_corpora(data_dir: Path) -> list[Conversation]:
    """Every labelled conversation of the corpora that heads learn from, in file order."""
    return [item for source in SOURCES for item in source.load(data_dir)]


def repeats() -> dict[str, int]:
    """How often an epoch goes through each corpus."""
    return {source.corpus.name: source.repeats for source in SOURCES}


def describe(conversations: list[Conversation]) -> list[dict[str, object]]:
    """The corpora behind the conversations: files, sizes and licences.

    A contrast example counts as a context of the corpus whose turns it borrows.
    """
    rows: list[dict[str, object]] = []
    borrowed = [item for item in conversations if item.corpus == "contrast"]
    for corpus in (*(source.corpus for source in SOURCES), *CONTEXTS):
        own = [item for item in conversations if item.corpus == corpus.name]
        sources = {corpus.name, *(file.removesuffix(".jsonl.gz") for file in corpus.files)}
        rows.append(
            {
                "name": corpus.title,
                "file": ", ".join(corpus.files),
                "items": len(own),
                "turns": sum(bool(turn.labels) for item in own for turn in item.turns),
                "contexts": sum(item.split_key in sources for item in borrowed),
                "licence": corpus.licence,
                "url": corpus.url,
            }
        )
    return rows
