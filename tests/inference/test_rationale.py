"""Rationale spans on texts that are not plain English sentences."""

import itertools
import re
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.inference.rationale import sentence_scores, sentences, spans


def shown(text: str, tokens: list[tuple[int, int]], chosen: list[int] | None = None) -> list[str]:
    """The highlighted text; ``chosen``: tokens with probability 1, default all."""
    wanted = range(len(tokens)) if chosen is None else chosen
    probabilities = np.array([float(i in wanted) for i in range(len(tokens))], np.float32)
    return [text[start:end] for start, end in spans(probabilities, tokens, 0.5, text)]


def words_of(text: str) -> list[tuple[int, int]]:
    """One token per run of letters, and per other character."""
    tokens: list[tuple[int, int]] = []
    for index, sign in enumerate(text):
        if sign.isspace():
            continue
        joins = tokens and tokens[-1][1] == index and sign.isalnum() and text[index - 1].isalnum()
        if joins:
            tokens[-1] = (tokens[-1][0], index + 1)
        else:
            tokens.append((index, index + 1))
    return tokens


def test_spans_are_whole_sentences() -> None:
    text = "Hello there. I am so sorry for you! Why?"
    tokens = words_of(text)
    sorry = [i for i, (start, _) in enumerate(tokens) if 13 <= start < 29]
    assert shown(text, tokens, sorry) == ["I am so sorry for you!"]


def test_neighbouring_sentences_are_joined() -> None:
    text = "I am sorry.  That is hard.\nWhy?"
    assert shown(text, words_of(text)) == [text]


def test_a_sentence_is_scored_by_the_more_probable_half_of_its_tokens() -> None:
    scores = sentence_scores(np.array([0.9, 0.1, 0.7, 0.2, 0.4]), np.array([0, 0, 0, 0, 1]))
    assert scores.tolist() == pytest.approx([0.8, 0.8, 0.8, 0.8, 0.4])


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("One. Two", [0, 0, 1]),
        ("It cost 3.50 now", [0, 0, 0, 0, 0, 0]),
        ("Really?! Yes", [0, 0, 0, 1]),
        ('He said "no." Then', [0, 0, 0, 0, 0, 0, 1]),
        ("first line\nsecond", [0, 0, 1]),
        ("oh… well", [0, 0, 1]),
    ],
)
def test_where_sentences_end(text: str, numbers: list[int]) -> None:
    assert sentences(words_of(text), text).tolist() == numbers


@given(st.text(alphabet=".!\u2026 \n\t')a", max_size=20))
def test_sentences_end_at_marks_before_blanks_and_at_line_ends(text: str) -> None:
    """The same ends as those of a plainer pattern, which takes quadratic time."""
    plain = re.compile(r"[.!?…]+[\"'”’)\]]*\s+|\s*\n\s*")
    offsets = [(place, place + 1) for place in range(len(text))]
    ends = [match.end() for match in plain.finditer(text)]
    wanted = [sum(end <= start for end in ends) for start, _ in offsets]
    assert sentences(offsets, text).tolist() == wanted


@pytest.mark.parametrize("run", [" ", "!", "!)", "\n ", "! "])
def test_long_runs_of_marks_and_blanks_take_linear_time(run: str) -> None:
    text = "I am sorry" + run * (64_000 // len(run)) + "x"
    begun = time.process_time()
    sentences([(len(text) - 1, len(text))], text)
    assert time.process_time() - begun < 2.0, "quadratic: over 15 s"


def test_special_tokens_belong_to_no_sentence() -> None:
    """Their probabilities of 1 would otherwise select the first sentence."""
    text = "Yes. No."
    tokens = [(0, 0), *words_of(text), (0, 0)]
    probabilities = np.array([1, 0, 0, 1, 1, 1], np.float32)
    assert spans(probabilities, tokens, 0.5, text) == [(5, 8)]


def test_a_truncated_sentence_ends_with_the_last_token() -> None:
    text = "I am so sorry for everything that happened"
    assert shown(text, words_of(text)[:4]) == ["I am so sorry"]


def test_spans_are_extended_to_whole_words() -> None:
    assert shown("(unbelievable)", [(3, 6)]) == ["unbelievable"]


def test_several_tokens_of_one_character_give_one_span() -> None:
    """Byte-level tokenisers split an emoji into several tokens with equal offsets."""
    assert shown("🙂", [(0, 1), (0, 1), (0, 1)]) == ["🙂"]


def test_words_of_any_script_are_extended() -> None:
    assert shown("сочувствую", [(2, 4)]) == ["сочувствую"]


def test_empty_text_has_no_spans() -> None:
    assert spans(np.zeros(0, np.float32), [], 0.5, "") == []
    assert spans(np.ones(2, np.float32), [(0, 0), (0, 0)], 0.5, "") == []


def test_different_numbers_of_offsets_and_probabilities_are_an_error() -> None:
    with pytest.raises(ValueError, match="1 probabilities for 2 tokens"):
        spans(np.zeros(1, np.float32), [(0, 1), (1, 2)], 0.5, "ab")


@given(st.text(alphabet="ab 1.,!'é\u0301🙂\n", min_size=1, max_size=30), st.data())
def test_spans_cover_exactly_the_sentences_above_the_threshold(
    text: str, data: st.DataObject
) -> None:
    cuts = sorted({0, len(text), *data.draw(st.sets(st.integers(0, len(text)), max_size=8))})
    tokens = list(itertools.pairwise(cuts))
    probabilities = np.array(
        data.draw(st.lists(st.floats(0, 1, width=32), min_size=len(tokens), max_size=len(tokens))),
        np.float32,
    )
    found = spans(probabilities, tokens, 0.5, text)
    scores = sentence_scores(probabilities, sentences(tokens, text))
    for token, score in zip(tokens, scores.tolist(), strict=True):
        if score >= 0.5:
            assert any(start <= token[0] and token[1] <= end for start, end in found)
    wanted = [token for token, score in zip(tokens, scores.tolist(), strict=True) if score >= 0.5]
    assert all(any(a <= start and end <= b for start, end in wanted) for a, b in found)
    assert all(b < c for (_, b), (c, _) in itertools.pairwise(found))
