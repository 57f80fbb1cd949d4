"""Contexts, phrases and contrast examples; no probed item is used for training."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("torch")

from models.data import contrast, dialogues, empathetic_intents, epitome
from models.data.corpora import (
    Conversation,
    Turn,
    default_data_dir,
    one_hot,
    resolve_data_dir,
)
from models.data.dialogues import Context, contexts, later_news, pool_of
from models.data.phrases import (
    CONGRATULATIONS,
    MOST_WORDS,
    PROBE_PHRASES,
    RESERVED,
    is_cheer,
    normal,
    rationale_phrases,
)
from models.data.registry import CORPORA
from models.data.split import split_fold
from models.labels import CLIENT, COUNSELLOR, RATIONALE_ORDER
from models.probes import cases as probe_cases
from stream_app.core.measures.heads import LEVELS
from tests.models.tiny import ROWS, service_turn, write_contexts, write_rows

with_corpora = pytest.mark.skipif(default_data_dir() is None, reason="the corpora are not here")


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return write_contexts(tmp_path)


def pair(text: str, level: int = 1, **phrases: str) -> Conversation:
    """An EPITOME pair whose response has the given rationale for each named mechanism."""
    response = Turn(COUNSELLOR, text)
    for head in RATIONALE_ORDER:
        found = text.find(phrases[head]) if head in phrases else -1
        spans = [(found, found + len(phrases[head]))] if found >= 0 else []
        response.rationales[head] = spans
        response.labels[head] = one_hot(head, LEVELS[level if spans else 0])
    return Conversation("epitome", text, [Turn(CLIENT, "I failed."), response])


PAIRS = [
    pair("So sad for you.", emotional_reactions="So sad for you"),
    pair("I failed, too.", 2, interpretations="I failed, too."),
    pair("When was that?", explorations="When was that?"),
]


# Contexts


def test_one_service_corpus_is_reserved_for_the_probe_and_the_others_are_shared(
    data_dir: Path,
) -> None:
    found = {pool: list(contexts(data_dir, pool)) for pool in ("train", "probe")}
    sources = {pool: {c.source for c in own} for pool, own in found.items()}
    assert sources["train"] == {
        "uss_sgd",
        "uss_mwoz",
        "uss_redial",
        "empathetic_dialogues",
    }
    assert sources["probe"] == sources["train"] | {"uss_ccpe"}
    # Each conversation with a good or bad emotion gives one context in one pool.
    assert sum(map(len, found.values())) == ROWS * 6
    assert {c.kind for c in found["probe"]} == {"task", "good_news", "bad_news"}


def test_a_conversation_is_always_in_the_same_pool_and_seven_tenths_train() -> None:
    pools = [pool_of(f"hit:{n}") for n in range(5000)]
    assert pools == [pool_of(f"hit:{n}") for n in range(5000)]
    assert pools.count("train") == pytest.approx(3500, abs=110)


def test_a_service_context_ends_with_a_satisfied_user_and_has_the_real_reply(
    tmp_path: Path,
) -> None:
    turns = [
        service_turn("user", "This is bad.", 1, 2),
        service_turn("system", "Sorry."),
        service_turn("user", "A table, please.", 3, 3),
        service_turn("system", "For how many?"),
        service_turn("user", "   ", 5),
        service_turn("user", "Nobody rated me."),
        service_turn("system", "Booked."),
    ]
    for file in CORPORA["service"].files:
        rows = [{"conversation_id": "x", "turns": turns}] if "ccpe" in file else []
        write_rows(tmp_path / file, rows)
    write_rows(tmp_path / "empathetic_dialogues.jsonl.gz", [])
    (found,) = contexts(tmp_path, "probe")
    assert [(turn.role, turn.text) for turn in found.turns] == [
        (CLIENT, "This is bad."),
        (COUNSELLOR, "Sorry."),
        (CLIENT, "A table, please."),
    ]
    assert (found.kind, found.reply, found.source) == ("task", "For how many?", "uss_ccpe")


def test_news_consists_of_the_first_utterance_and_its_reply(data_dir: Path) -> None:
    news = [c for pool in ("train", "probe") for c in contexts(data_dir, pool) if c.kind != "task"]
    assert Counter(c.kind for c in news) == {"good_news": ROWS, "bad_news": ROWS}
    for context in news:
        (turn,) = context.turns
        assert turn.role == CLIENT
        assert turn.text.startswith("My news")
        assert context.reply == "Go on."


def test_no_emotion_is_both_good_and_bad() -> None:
    assert not dialogues.GOOD & dialogues.BAD


@with_corpora
def test_no_public_conversation_gives_contexts_to_both_pools() -> None:
    """By conversation; the probe excludes equal words of two conversations (below)."""
    folder = resolve_data_dir(None)
    counts = [sum(1 for _ in contexts(folder, pool)) for pool in ("train", "probe")]
    assert min(counts) > 5000
    trained = {c.source for c in contexts(folder, "train")}
    assert "uss_ccpe" not in trained


@with_corpora
def test_no_probed_context_equals_a_training_context() -> None:
    folder = resolve_data_dir(None)
    trained = {probe_cases.said(context.turns) for context in contexts(folder, "train")}
    for case in probe_cases.cases(folder, [], size=400, seed=17):
        assert probe_cases.said(case.turns[:-1]) not in trained


# Phrases


@pytest.mark.parametrize(
    ("phrase", "words"),
    [("I'm  SORRY!", "im sorry"), ("I’m sorry", "im sorry"), ("Why?\n", "why"), ("...", "")],
)
def test_phrases_are_compared_without_case_punctuation_and_spacing(phrase: str, words: str) -> None:
    assert normal(phrase) == words


def test_training_and_probing_use_different_congratulations() -> None:
    trained = {normal(phrase) for phrase in CONGRATULATIONS["train"]}
    assert not trained & RESERVED
    assert len(trained) == len(CONGRATULATIONS["train"])


def test_the_first_three_phrases_are_from_the_paper() -> None:
    """Lee et al., Table 2."""
    assert [PROBE_PHRASES[head][:3] for head in RATIONALE_ORDER] == [
        ("I know how you feel.", "I'm sorry.", "I feel you."),
        ("I feel the same way.", "I know how you feel.", "I understand how you feel."),
        ("Why?", "What happened?", "Why do you feel like that?"),
    ]


def test_rationale_phrases_have_a_level_and_exclude_probed_phrases() -> None:
    long = " ".join(["so"] * (MOST_WORDS + 1))
    pairs = [
        *PAIRS,
        pair("im sorry", emotional_reactions="im sorry"),
        pair("What Happened??", explorations="What Happened??"),
        pair("Why.", explorations="Why."),
        pair("Sad!", emotional_reactions="Sad!"),
        pair(long, interpretations=long),
        pair("It is\n so  hard", 2, interpretations="It is\n so  hard"),
        Conversation("esconv", "other", [Turn(COUNSELLOR, "No rationales.")]),
    ]
    assert rationale_phrases(pairs) == {
        "emotional_reactions": [("So sad for you", 1)],
        "interpretations": [("I failed, too.", 2), ("It is so hard", 2)],
        "explorations": [("When was that?", 1)],
    }


@with_corpora
def test_no_public_rationale_that_trains_equals_a_probed_phrase() -> None:
    pairs = list(epitome.load(resolve_data_dir(None)))
    for phrases in rationale_phrases(pairs).values():
        assert len(phrases) > 300
        assert not {normal(phrase) for phrase, _ in phrases} & RESERVED


# Contrast examples


def kind_of(example: Conversation) -> str:
    first = example.turns[0].text
    if "I need thing" in first:
        return "task"
    return "good_news" if "joyful" in first else "bad_news"


def test_a_contrast_example_has_a_level_where_its_phrase_fits_and_none_elsewhere(
    data_dir: Path,
) -> None:
    mix = contrast.Mix(8, 5, 4, 3, 2)
    made = contrast.load(PAIRS, data_dir, seed=1, mix=mix)
    cheers = {normal(phrase) for phrase in CONGRATULATIONS["train"]}
    counts: Counter[tuple[str, str, int]] = Counter()
    for example in made:
        assert (example.corpus, example.part) == ("contrast", "train")
        response = example.turns[-1]
        ((head, distribution),) = response.labels.items()
        cheerful = any(phrase in normal(response.text) for phrase in cheers)
        level = distribution.index(1.0)
        counts[kind_of(example), "cheers" if cheerful else head, level] += 1
        assert not response.rationales
        assert not any(turn.labels for turn in example.turns[:-1])
    assert counts == {
        **{("task", head, 0): 8 for head in RATIONALE_ORDER},
        ("bad_news", "emotional_reactions", 1): 8 + 5 + 2,
        ("bad_news", "interpretations", 2): 8 + 2,
        ("bad_news", "explorations", 1): 8 + 2,
        ("good_news", "emotional_reactions", 0): 5,
        ("good_news", "cheers", 1): 4 + 3 + 2,
        ("bad_news", "cheers", 0): 4,
        ("task", "cheers", 0): 3,
    }


def test_a_pair_has_the_same_words_in_fitting_and_unfitting_contexts(
    data_dir: Path,
) -> None:
    mix = contrast.Mix(beside_real_reply=0)
    texts: dict[bool, Counter[tuple[str, str]]] = {True: Counter(), False: Counter()}
    for example in contrast.load(PAIRS, data_dir, seed=2, mix=mix):
        response = example.turns[-1]
        ((head, distribution),) = response.labels.items()
        texts[distribution[0] < 1.0][head, response.text] += 1
    assert texts[True] == texts[False]


def test_a_reply_to_news_only_gets_a_fitting_phrase(data_dir: Path) -> None:
    for example in contrast.load(PAIRS, data_dir, seed=2):
        response = example.turns[-1]
        ((_, distribution),) = response.labels.items()
        if distribution[0] == 1.0:
            assert "Go on." not in response.text


def test_cheers_are_not_sympathy() -> None:
    assert all(is_cheer(phrase) for phrase in CONGRATULATIONS["probe"][:2])
    assert not any(is_cheer(phrase) for phrase in PROBE_PHRASES["emotional_reactions"])


def test_contrast_examples_depend_only_on_the_seed(data_dir: Path) -> None:
    def texts(seed: int) -> list[str]:
        return [example.turns[-1].text for example in contrast.load(PAIRS, data_dir, seed)]

    assert texts(1) == texts(1)
    assert texts(1) != texts(2)


def test_contrast_contexts_are_from_the_training_pool(data_dir: Path) -> None:
    pool = (*contexts(data_dir, "train"), *later_news(data_dir, "train"))
    known = {probe_cases.said(context.turns) for context in pool}
    for example in contrast.load(PAIRS, data_dir, seed=3):
        assert probe_cases.said(tuple(example.turns[:-1])) in known


def test_a_phrase_gets_a_full_stop_and_is_a_separate_sentence() -> None:
    assert list(contrast.placements("I see", "Yes.")) == ["I see.", "I see. Yes.", "Yes. I see."]
    assert next(contrast.placements("Why?", "Yes.")) == "Why?"


@with_corpora
def test_public_contrast_examples_have_no_probed_phrase_or_held_out_response() -> None:
    """For one fold: training examples come only from the fold's training part."""
    folder = resolve_data_dir(None)
    parts = split_fold(list(epitome.load(folder)), 0, 5, 17)
    made = contrast.load(parts["train"], folder, 17)
    pool = (*contexts(folder, "train"), *later_news(folder, "train"))
    replies = {normal(context.reply) for context in pool}
    tested = {normal(pair.turns[-1].text) for pair in parts["test"]}
    trained = {normal(pair.turns[-1].text) for pair in parts["train"]}
    for example in made:
        text = normal(example.turns[-1].text)
        assert text not in RESERVED - replies
        assert text not in tested - trained - replies


# Intents


def test_human_labels_are_for_testing_and_training_intents_are_capped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(empathetic_intents, "MOST_PER_INTENT", 2)
    found_by_words = {"source": "lexically_extended_intent_data", "split": "train"}
    by_people = {"source": "manual_annotations", "split": "test"}
    rows = [
        {"line": "32 <SEP> I wish you luck.", "intent": "wishing", **found_by_words},
        {"line": "Best wishes!", "intent": "wishing", **found_by_words},
        {"line": "One wish too many.", "intent": "wishing", **found_by_words},
        {"line": "Not of the split.", "intent": "agreeing", **found_by_words, "split": "valid"},
        {"line": "I agree.", "intent": "agreeing", **found_by_words},
        {"line": "It was so for me.", "intent": "sharing_experience", **by_people},
    ]
    write_rows(tmp_path / "empathetic_intents.jsonl.gz", rows)
    found = list(empathetic_intents.load(tmp_path))
    assert [(c.turns[0].text, c.part) for c in found] == [
        ("I wish you luck.", "train"),
        ("Best wishes!", "train"),
        ("I agree.", "train"),
        ("It was so for me.", "test"),
    ]
    head = empathetic_intents.HEAD
    assert [c.turns[0].labels[head] for c in found] == [
        one_hot(head, intent) for intent in ("wishing", "wishing", "agreeing", "neutral")
    ]


@with_corpora
def test_public_intents_have_no_prefix_and_enough_test_items() -> None:
    found = list(empathetic_intents.load(resolve_data_dir(None)))
    assert not any("<SEP>" in c.turns[0].text for c in found)
    assert Counter(c.part for c in found)["test"] > 400
    assert len({c.split_key for c in found}) == len(found)


def test_later_news_consists_of_three_turns_of_the_probes_conversations(data_dir: Path) -> None:
    later = list(later_news(data_dir, "probe"))
    probed = [c for c in contexts(data_dir, "probe") if c.kind != "task"]
    assert [context.turns[:1] for context in later] == [context.turns for context in probed]
    assert all(len(context.turns) == 3 and context.reply == "I see." for context in later)
    assert isinstance(later[0], Context)
