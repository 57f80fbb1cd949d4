"""Corpora that are only evaluated: their loaders, and sentences for files that are missing."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from models.data.corpora import Corpus, MissingCorpusError, default_data_dir, resolve_data_dir
from models.labels import CLIENT, COUNSELLOR
from models.reader import corpora
from models.reader.evaluation import evaluated
from tests.models.tiny import write_rows

CARE = [5.0, 4.0, 4.0, 3.0, 5.0, 5.0, 2.0, 1.0, 4.0, 0.0]


def said(role: str, volley: int, text: str) -> dict[str, Any]:
    return {"role": role, "volley": volley, "text": text, "misc_by_llm": "Other"}


def interview(care: list[float]) -> dict[str, Any]:
    utterances = [
        said("counsellor", 1, "Hello."),
        said("counsellor", 1, "How are you?"),
        said("client", 2, "Tired"),
    ]
    return {
        "id": "one",
        "utterances": utterances,
        "care_items_1_5": care,
        "liked": "YES",
        "helpful": "NO",
    }


def service_turn(mark: str, **other: object) -> dict[str, Any]:
    row = {
        "client": "de_client_01",
        "context_en": f"<{mark}>The sofa is broken",
        "text_en": "<speaker2>I am sorry > to hear that",
        "iq": 4,
        "politeness": 1,
        "understanding": 0,
    }
    return row | other


def write_lexicon(folder: Path) -> None:
    lines = [
        ["", "Passive", "Passive_include", "Passive_add", "Active", "Active_include", "Active_add"],
        ["Definition", "wish", "", "", "plan", "", ""],
        ["0", "be gone", "", "", "end it", "", ""],
        ["1", "be gone ", "", "", "", "", ""],
    ]
    with (folder / evaluated.LEXICON.files[0]).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(lines)
    path = folder / evaluated.LEXICON.files[1]
    path.write_text("Passive: a wish.\n\nActive: a plan.\n", encoding="utf-8")


def test_utterances_of_a_volley_are_one_turn_and_items_that_do_not_apply_do_not_count(
    tmp_path: Path,
) -> None:
    write_rows(tmp_path / "mibot.jsonl.gz", [interview(CARE)])
    (found,) = evaluated.mibot(tmp_path)
    assert found.turns == ((COUNSELLOR, "Hello. How are you?"), (CLIENT, "Tired"))
    assert found.care[-2:] == (4, None)
    assert found.mean_care == pytest.approx(33 / 9)
    assert (found.liked, found.helpful) == (True, False)


def test_a_measure_with_items_missing_is_refused(tmp_path: Path) -> None:
    write_rows(tmp_path / "mibot.jsonl.gz", [interview(CARE[:9])])
    with pytest.raises(ValueError, match="9 CARE items in one"):
        list(evaluated.mibot(tmp_path))


def test_the_side_of_a_service_turn_is_the_other_than_before_it(tmp_path: Path) -> None:
    rows = [service_turn("speaker2"), service_turn("speaker1", iq=0, politeness=5)]
    write_rows(tmp_path / "maia_turns.jsonl.gz", rows)
    agent, customer = evaluated.maia_turns(tmp_path)
    assert (agent.role, agent.before) == (COUNSELLOR, ((CLIENT, "The sofa is broken"),))
    assert agent.text == "I am sorry > to hear that"
    assert (agent.quality, agent.polite, agent.understands) == (4, True, False)
    assert (customer.role, customer.quality, customer.polite) == (CLIENT, None, None)


def test_the_lexicon_has_each_phrase_of_a_construct_once(tmp_path: Path) -> None:
    write_lexicon(tmp_path)
    assert evaluated.lexicon(tmp_path) == {"Passive": ("be gone",), "Active": ("end it",)}
    assert evaluated.definitions(tmp_path) == ("Passive: a wish.", "Active: a plan.")


READERS: list[tuple[Corpus, str, Callable[[Path], Iterable[object]]]] = [
    (evaluated.MIBOT, evaluated.MIBOT.files[0], evaluated.mibot),
    (evaluated.MAIA, evaluated.MAIA.files[0], evaluated.maia_turns),
    (evaluated.LEXICON, evaluated.LEXICON.files[0], evaluated.lexicon),
    (evaluated.LEXICON, evaluated.LEXICON.files[1], evaluated.definitions),
    (corpora.FEEDBACK, corpora.FEEDBACK.files[0], corpora.feedback),
    (corpora.CHATS, corpora.CHATS.files[0], corpora.chats),
    (corpora.OPPORTUNITY, corpora.OPPORTUNITY.files[0], corpora.opportunity),
]


@pytest.mark.parametrize(("corpus", "file", "read"), READERS)
def test_a_missing_file_is_named_with_its_publisher(
    tmp_path: Path, corpus: Corpus, file: str, read: Callable[[Path], Iterable[object]]
) -> None:
    with pytest.raises(MissingCorpusError) as error:
        list(read(tmp_path))
    for part in (file, str(tmp_path), corpus.title, corpus.url, corpus.licence):
        assert part in str(error.value)


def test_nothing_is_trained_on_what_may_only_be_evaluated() -> None:
    trained = {corpus.name for corpus in corpora.CORPORA}
    assert not trained & {evaluated.MIBOT.name, evaluated.MAIA.name, evaluated.LEXICON.name}


@pytest.mark.skipif(default_data_dir() is None, reason="the corpora are not here")
def test_the_evaluated_corpora_load() -> None:
    folder = resolve_data_dir(None)
    assert all(len(each.turns) > 2 and each.mean_care for each in evaluated.mibot(folder))
    assert {each.role for each in evaluated.maia_turns(folder)} == {CLIENT, COUNSELLOR}
    assert all(evaluated.lexicon(folder).values())
    assert len(evaluated.definitions(folder)) > 40
