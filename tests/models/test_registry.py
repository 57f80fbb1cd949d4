"""A corpus is one registry entry, from which it is read, described and trained on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

from models.data import load_for_command, registry
from models.data.corpora import Conversation, Corpus, Turn, one_hot, read_rows
from models.fit import train
from models.labels import CLIENT, COUNSELLOR
from models.model.batches import epoch_steps, seeded_random, tokenise
from tests.models.tiny import tiny_tokenizer, write_corpora, write_rows

TINY = Corpus("tiny", "Tiny (nobody 2026)", ("tiny.jsonl.gz",), "https://example.org", "none")
ROWS = 9


def read_tiny(data_dir: Path) -> Iterator[Conversation]:
    for row in read_rows(TINY, TINY.files[0], data_dir):
        answer = Turn(COUNSELLOR, row["answer"], {"strategy": one_hot("strategy", "question")})
        yield Conversation(TINY.name, row["id"], [Turn(CLIENT, row["said"]), answer])


@pytest.fixture
def with_tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = registry.Source(TINY, read_tiny, repeats=3)
    monkeypatch.setattr(registry, "SOURCES", (*registry.SOURCES, entry))
    monkeypatch.setattr(train, "REPEATS", {**registry.repeats(), "contrast": 1})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [{"id": f"t{n}", "said": "i feel sad", "answer": "why ?"} for n in range(ROWS)]
    write_rows(tmp_path / TINY.files[0], rows)
    return write_corpora(tmp_path, size=12)


@pytest.mark.usefixtures("with_tiny")
def test_an_entry_is_read_described_and_repeated_as_configured(folder: Path) -> None:
    conversations = load_for_command(folder)
    assert [item.corpus for item in conversations].count("tiny") == ROWS
    [row] = [row for row in registry.describe(conversations) if row["name"] == TINY.title]
    assert (row["file"], row["items"], row["turns"]) == ("tiny.jsonl.gz", ROWS, ROWS)
    segments = tokenise(conversations, tiny_tokenizer())
    steps = epoch_steps(segments, train.Recipe().repeats, 4, seeded_random(17, 0))
    used = [segment.corpus for step in steps for segment in step]
    assert used.count("tiny") == 3 * ROWS
    assert used.count("epitome") == 2 * 12


def test_the_recipe_takes_its_repeats_from_the_registry() -> None:
    assert {**registry.repeats(), "contrast": 1} == train.REPEATS
    assert list(registry.repeats()) == [source.corpus.name for source in registry.SOURCES]
    assert {"service", "empathetic_dialogues"} == set(registry.CORPORA) - set(registry.repeats())
