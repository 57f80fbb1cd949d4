"""The labelled utterances of docs/intents.md, and the agreement of their two passes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from models.intents import figures, utterances
from stream_app.inference import intent_files

NAMES = intent_files.load(Path("service")).names
ROWS = [json.loads(line) for line in utterances.UTTERANCES.read_text("utf-8").splitlines()]


def test_at_least_400_utterances_are_labelled_with_known_intents_twice() -> None:
    assert len(ROWS) >= 400
    assert [row["id"] for row in ROWS] == list(range(1, len(ROWS) + 1))
    assert {name for row in ROWS for name in row["intents"]} == set(NAMES)
    assert utterances.second_labels().keys() == {row["id"] for row in ROWS}


def test_no_text_of_a_corpus_is_stored() -> None:
    for row in ROWS:
        assert ("text" in row) != ("conversation" in row)


def test_no_written_utterance_is_an_example() -> None:
    service = intent_files.load(Path("service")).intents
    known = {text.casefold() for each in service for text in each.examples}
    written = utterances.read(None)
    assert len(written) > 200
    assert not known & {each.text.casefold() for each in written}


def test_the_passes_agree_where_nothing_differs() -> None:
    written = utterances.read(None)
    same = {each.id: each.intents for each in written}
    assert figures.agreement(written, same, NAMES)["kappa"] == 1.0
    found = figures.agreement(written, utterances.second_labels(), NAMES)
    assert 0 < found["different"] < 40


def test_figures_of_hits() -> None:
    truth = np.array([[True], [True], [True], [False]])
    found = figures.measure(truth, np.array([[True], [False], [True], [True]]), ["a"])
    own = found["intents"]["a"]
    assert (own["positives"], own["hits"], own["right"]) == (3, 3, 2)
    assert own["precision"]["value"] == own["recall"]["value"] == pytest.approx(2 / 3)
    assert found["f1"]["value"] == pytest.approx(2 / 3)
    assert found["counted"] == 1
