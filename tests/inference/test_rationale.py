"""Rationale spans on texts that are not plain English words."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.inference.rationale import spans


def shown(text: str, tokens: list[tuple[int, int]], chosen: list[int] | None = None) -> list[str]:
    """The highlighted words; ``chosen``: which tokens, or all."""
    wanted = range(len(tokens)) if chosen is None else chosen
    probabilities = np.array([float(i in wanted) for i in range(len(tokens))], np.float32)
    return [text[start:end] for start, end in spans(probabilities, tokens, 0.5, text)]


def test_a_word_grows_to_both_sides_and_no_further() -> None:
    assert shown("(unbelievable)", [(3, 6)]) == ["unbelievable"]


def test_punctuation_does_not_grow_into_its_word() -> None:
    assert shown("sorry, you", [(5, 6)]) == [","]


def test_pieces_of_one_word_make_one_span() -> None:
    assert shown("understandable", [(0, 5), (5, 10), (10, 14)], [0, 2]) == ["understandable"]


def test_any_white_space_joins_and_anything_else_parts() -> None:
    tokens = [(0, 1), (3, 4)]
    assert shown("a\n\u2003b", tokens) == ["a\n\u2003b"]
    assert shown("a, b", tokens) == ["a", "b"]


def test_several_tokens_of_one_character_make_one_span() -> None:
    """Byte-level vocabularies read an emoji as several tokens with the same offsets."""
    assert shown("a 🙂 b", [(2, 3), (2, 3), (2, 3)]) == ["🙂"]


def test_digits_and_letters_of_any_script_are_words() -> None:
    assert shown("сочувствую тебе", [(2, 4)]) == ["сочувствую"]
    assert shown("room42b!", [(4, 6)]) == ["room42b"]


def test_more_offsets_than_probabilities_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="zip"):
        spans(np.zeros(1, np.float32), [(0, 1), (1, 2)], 0.5, "ab")


@given(st.text(alphabet="ab 1.,'é\u0301🙂\n", min_size=1, max_size=30), st.data())
def test_each_chosen_token_is_covered_and_no_span_is_without_one(
    text: str, data: st.DataObject
) -> None:
    cuts = sorted({0, len(text), *data.draw(st.sets(st.integers(0, len(text)), max_size=8))})
    tokens = list(itertools.pairwise(cuts))
    chosen = data.draw(st.sets(st.sampled_from(range(len(tokens)))))
    probabilities = np.array([float(i in chosen) for i in range(len(tokens))], np.float32)
    found = spans(probabilities, tokens, 0.5, text)
    wanted = [tokens[i] for i in chosen]
    assert all(any(a <= start and end <= b for a, b in found) for start, end in wanted)
    assert all(any(a <= start and end <= b for start, end in wanted) for a, b in found)
    assert all(b < c for (_, b), (c, _) in itertools.pairwise(found))
