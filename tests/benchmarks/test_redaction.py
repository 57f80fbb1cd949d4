"""The evaluation set of redaction, and the targets that the default redactor must keep."""

from collections import Counter

import pytest

from benchmarks.redaction import scores, sentences
from benchmarks.redaction.sentences import Sentence
from stream_app.redaction.mask import redact
from stream_app.redaction.rules import Rules
from stream_app.redaction.spans import Kind, Span

SET = sentences.read()


def test_the_set_has_all_kinds_and_eight_countries_in_both_halves() -> None:
    assert len(SET) >= 400
    for split in sentences.SPLITS:
        half = [one for one in SET if one.split == split]
        assert {span.kind for one in half for span in one.spans} == set(Kind)
        if split == "chat":
            assert len(half) >= 200
            continue
        assert len({one.country for one in half} - {None}) == 8
        assert Counter(one.negative for one in half)["emotion"] >= 10


def test_marks_are_read_as_spans() -> None:
    one = next(one for one in SET if one.text == "Hello, my name is Joan Ark.")
    assert one.spans == (Span(18, 26, Kind.INTRODUCED_NAME),)


@pytest.mark.parametrize("kind", Kind)
def test_recall_and_precision_reach_the_targets(kind: Kind) -> None:
    score = scores.score(SET, Rules())[kind]
    assert score.recall >= scores.goal_of(kind)
    assert score.precision >= 0.95


def test_a_detail_of_which_a_letter_is_left_is_missed() -> None:
    one = Sentence("I am Zork", (Span(5, 9, Kind.MENTIONED_NAME),), "develop", "GB", None)

    class Half:
        def find(self, text: str) -> list[Span]:
            return [Span(5, 7, Kind.MENTIONED_NAME)] if text == one.text else []

    assert scores.missed(one, Half()) == list(one.spans)
    assert scores.wrong(one, Half()) == []
    assert redact(one.text, Half()) == "I am ••rk"


@pytest.mark.parametrize("name", scores.SETS)
def test_the_first_sentences_and_the_new_ones_reach_the_goals(name: str) -> None:
    some = scores.of_set(SET, name)
    found = scores.score(some, Rules()).items()
    assert scores.group(found, names=True).recall >= scores.NAMES_GOAL
    assert scores.group(found, names=False).recall >= scores.GOAL
    plain, masked = scores.over_masked(some, Rules())
    assert plain >= 40
    assert masked <= scores.MOST_MASKED * plain


def test_at_most_one_in_a_hundred_sentences_without_a_detail_is_masked() -> None:
    negative = [one for one in SET if one.negative]
    assert sum(bool(scores.wrong(one, Rules())) for one in negative) <= len(negative) / 100


def test_emotional_words_with_a_capital_stay() -> None:
    emotional = [one for one in SET if one.negative == "emotion"]
    assert not [one.text for one in emotional if scores.wrong(one, Rules())]
