"""Shared by the loaders: conversation type, list of corpora, file reading and errors."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from models.labels import HEADS_BY_NAME

REPOSITORY = Path(__file__).resolve().parents[2]


class MissingCorpusError(FileNotFoundError):
    """A corpus file is not in the data directory."""


@dataclass(frozen=True)
class Corpus:
    """A public corpus: its files, its publisher and the terms it is offered under."""

    name: str
    title: str
    files: tuple[str, ...]
    url: str
    licence: str


@dataclass
class Turn:
    """One utterance with its annotations.

    `labels` maps a head to a distribution over its labels (annotator votes, sums to 1).
    `rationales` maps a head to character spans (start, end) of `text`; a missing head was not
    annotated, an empty list means that no text supports the mechanism.
    """

    role: int
    text: str
    labels: dict[str, tuple[float, ...]] = field(default_factory=dict)
    rationales: dict[str, list[tuple[int, int]]] = field(default_factory=dict)


Part = Literal["train", "test"]


@dataclass
class Conversation:
    """Turns in order. Conversations with equal `split_key` are in the same split.

    `part` is set where the corpus defines the split (such as human labels for testing only).
    """

    corpus: str
    split_key: str
    turns: list[Turn]
    part: Part | None = None


def one_hot(head: str, label: str) -> tuple[float, ...]:
    """One-hot distribution for `label`; ValueError if the head has no such label."""
    labels = HEADS_BY_NAME[head].labels
    position = labels.index(label)
    return tuple(float(index == position) for index in range(len(labels)))


def votes(head: str, given: list[str]) -> tuple[float, ...]:
    """Share of annotators that chose each label of the head."""
    return tuple(given.count(label) / len(given) for label in HEADS_BY_NAME[head].labels)


def default_data_dir() -> Path | None:
    """`../shared/data` beside the repository if it exists, else None."""
    folder = REPOSITORY.parent / "shared" / "data"
    return folder if folder.is_dir() else None


def resolve_data_dir(given: Path | None) -> Path:
    """The given data directory, else the default one."""
    folder = given or default_data_dir()
    if folder is None:
        message = "no data directory: pass --data-dir FOLDER with the corpora (see models/README)"
        raise MissingCorpusError(message)
    return folder


def corpus_file(corpus: Corpus, file: str, data_dir: Path) -> Path:
    """Where a corpus file is; MissingCorpusError says where to get it if it is not there."""
    path = data_dir / file
    if not path.is_file():
        message = (
            f"{file} is not in {data_dir}: it is part of {corpus.title}, "
            f"published at {corpus.url} ({corpus.licence})"
        )
        raise MissingCorpusError(message)
    return path


def read_rows(corpus: Corpus, file: str, data_dir: Path) -> Iterator[dict[str, Any]]:
    """Read the JSON lines of one gzipped corpus file."""
    with gzip.open(corpus_file(corpus, file, data_dir), "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)
