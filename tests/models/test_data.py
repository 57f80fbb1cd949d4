"""Loaders with synthetic files in the publishers' formats."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from models.data import annomi, empathetic_exchanges, epitome, esconv, load_corpora
from models.data.corpora import (
    Conversation,
    MissingCorpusError,
    default_data_dir,
    resolve_data_dir,
)
from models.data.registry import CORPORA
from models.data.split import fold_of, fold_part, part_of, split, split_fold
from models.labels import CLIENT, COUNSELLOR, RATED, STRATEGIES
from tests.models.tiny import write_corpora, write_rows


def level(number: int, *phrases: str) -> dict[str, object]:
    return {"level": number, "rationales": list(phrases)}


def epitome_pair(**changes: object) -> dict[str, object]:
    return {
        "seeker_post_id": "p1",
        "response_post_id": "r1",
        "seeker_post": "I failed.",
        "response_post": "I am sorry.  Why do you think so?",
        "emotional_reactions": level(1, "I am sorry. Why"),
        "interpretations": level(0),
        "explorations": level(2, "Why do you think so?"),
        **changes,
    }


def test_an_epitome_pair_becomes_seeker_turn_and_labelled_response(tmp_path: Path) -> None:
    write_rows(tmp_path / "epitome_reddit.jsonl.gz", [epitome_pair()])
    (conversation,) = epitome.load(tmp_path)
    seeker, response = conversation.turns
    assert (seeker.role, response.role) == (CLIENT, COUNSELLOR)
    assert conversation.split_key == "p1"
    assert response.labels["emotional_reactions"] == (0.0, 1.0, 0.0)
    assert response.labels["explorations"] == (0.0, 0.0, 1.0)
    start, stop = response.rationales["explorations"][0]
    assert response.text[start:stop] == "Why do you think so?"
    assert response.rationales["interpretations"] == []


def test_a_rationale_is_found_despite_different_white_space(tmp_path: Path) -> None:
    write_rows(tmp_path / "epitome_reddit.jsonl.gz", [epitome_pair()])
    (conversation,) = epitome.load(tmp_path)
    start, stop = conversation.turns[1].rationales["emotional_reactions"][0]
    assert conversation.turns[1].text[start:stop] == "I am sorry.  Why"


@pytest.mark.parametrize("annotation", [level(2), level(1, "words that are not there")])
def test_a_missing_or_unmatched_rationale_is_unknown(
    tmp_path: Path, annotation: dict[str, object]
) -> None:
    row = epitome_pair(interpretations=annotation)
    write_rows(tmp_path / "epitome_reddit.jsonl.gz", [row])
    (conversation,) = epitome.load(tmp_path)
    assert "interpretations" not in conversation.turns[1].rationales
    assert "interpretations" in conversation.turns[1].labels


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("Question", "question"),
        ("Questions", "question"),
        ("Other", "others"),
        ("Others", "others"),
        ("Direct Guidance", "providing_suggestions"),
        ("Approval and Reassurance", "affirmation_and_reassurance"),
        ("Restatement", "restatement_or_paraphrasing"),
        ("Restatement or Paraphrasing", "restatement_or_paraphrasing"),
        ("Reflection of feelings", "reflection_of_feelings"),
        ("Self-disclosure", "self_disclosure"),
        ("Affirmation and Reassurance", "affirmation_and_reassurance"),
        ("Providing Suggestions", "providing_suggestions"),
        ("Information", "information"),
    ],
)
def test_published_strategy_names_map_to_the_eight_labels(name: str, label: str) -> None:
    assert esconv.strategy_label(name) == label
    assert label in STRATEGIES


def test_an_unknown_strategy_is_an_error() -> None:
    with pytest.raises(ValueError, match="Hypnosis"):
        esconv.strategy_label("Hypnosis")


def test_annotators_votes_become_shares_and_null_subtypes_none(tmp_path: Path) -> None:
    def note(behaviour: str, question: str | None) -> dict[str, object]:
        return {"behaviour": behaviour, "question": question, "reflection": None, "input": None}

    therapist = {
        "speaker": "therapist",
        "text": "How so?",
        "annotations": [note("question", "open"), note("question", "open"), note("other", None)],
    }
    talk = [{"talk_type": "change"}, {"talk_type": "neutral"}]
    client = {"speaker": "client", "text": "Well.", "annotations": talk}
    rows = [{"conversation_id": "a1", "utterances": [therapist, client]}]
    write_rows(tmp_path / "annomi.jsonl.gz", rows)
    (conversation,) = annomi.load(tmp_path)
    first, second = conversation.turns
    assert first.labels["behaviour"] == pytest.approx((2 / 3, 0.0, 0.0, 1 / 3))
    assert first.labels["question"] == pytest.approx((1 / 3, 0.0, 2 / 3))
    assert first.labels["reflection"] == (1.0, 0.0, 0.0)
    assert second.labels == {"talk_type": (0.5, 0.5, 0.0)}


def test_a_missing_file_is_named_with_its_corpus_and_its_publisher(tmp_path: Path) -> None:
    with pytest.raises(MissingCorpusError) as caught:
        list(esconv.load(tmp_path))
    message = str(caught.value)
    for part in ("esconv_train.jsonl.gz", str(tmp_path), "ESConv", CORPORA["esconv"].url):
        assert part in message


def test_without_a_data_directory_the_error_names_the_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("models.data.corpora.default_data_dir", lambda: None)
    with pytest.raises(MissingCorpusError, match="--data-dir"):
        resolve_data_dir(None)


def test_split_is_stable_and_about_ninety_ten() -> None:
    parts = [part_of(f"esconv:{number}", seed=17) for number in range(5000)]
    assert parts == [part_of(f"esconv:{number}", seed=17) for number in range(5000)]
    assert parts.count("train") == pytest.approx(4500, abs=100)
    assert set(parts) == {"train", "test"}


def test_every_item_is_tested_in_one_fold() -> None:
    for number in range(200):
        key = f"esconv:{number}"
        parts = [fold_part(key, fold, folds=5, seed=17) for fold in range(5)]
        assert parts.count("test") == 1
        assert parts.index("test") == fold_of(key, seed=17, folds=5)


def test_a_conversation_with_a_fixed_part_keeps_it_in_every_fold() -> None:
    people = Conversation("empathetic_intents", "1", [], part="test")
    for fold in range(3):
        assert split_fold([people], fold, 3, 17) == {"train": [], "test": [people]}


def test_split_depends_on_the_seed() -> None:
    keys = [f"epitome:{number}" for number in range(200)]
    assert [part_of(key, 1) for key in keys] != [part_of(key, 2) for key in keys]


def test_responses_to_one_post_stay_together(tmp_path: Path) -> None:
    rows = [epitome_pair(response_post_id=f"r{number}") for number in range(20)]
    write_rows(tmp_path / "epitome_reddit.jsonl.gz", rows)
    parts = split(list(epitome.load(tmp_path)), seed=3)
    assert sorted(map(len, parts.values())) == [0, 20]


def test_all_corpora_load_together(tmp_path: Path) -> None:
    conversations = load_corpora(write_corpora(tmp_path, size=6))
    names = ("epitome", "esconv", "annomi", "empathetic_intents", "empathetic_exchanges")
    assert [c.corpus for c in conversations] == [name for name in names for _ in range(6)]


def test_ratings_of_exchanges_are_shares_of_yes(tmp_path: Path) -> None:
    exchanges = [
        {"speaker": "my dog died", "listener": "so sorry", "empathy": 5},
        {"speaker": "thanks", "listener": "ok", "empathy": 2},
    ]
    row = {"conversation_id": "c", "exchanges": exchanges}
    write_rows(tmp_path / "empathetic_exchanges.jsonl.gz", [row])
    [found] = empathetic_exchanges.load(tmp_path)
    assert [turn.role for turn in found.turns] == [CLIENT, COUNSELLOR] * 2
    assert [turn.labels for turn in found.turns] == [
        {},
        {RATED: (0.0, 1.0)},
        {},
        {RATED: (0.75, 0.25)},
    ]


@pytest.mark.skipif(default_data_dir() is None, reason="the corpora are not here")
def test_the_public_corpora_load() -> None:
    conversations = load_corpora(resolve_data_dir(None))
    for name in {c.corpus for c in conversations}:
        turns = [t for c in conversations if c.corpus == name for t in c.turns]
        assert sum(bool(turn.labels) for turn in turns) > 1000
    for conversation in conversations:
        for turn in conversation.turns:
            for distribution in turn.labels.values():
                assert sum(distribution) == pytest.approx(1.0)
            for spans in turn.rationales.values():
                assert all(0 <= start < stop <= len(turn.text) for start, stop in spans)
