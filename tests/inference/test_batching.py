from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.inference.devices.batching import (
    ONE_BY_ONE,
    BatchLimits,
    Shapes,
    batch_by_length,
    batch_by_shape,
    plan_batches,
)
from stream_app.inference.rationale import spans

LENGTHS = st.lists(st.integers(1, 200), max_size=60)


LIMITS = st.builds(BatchLimits, st.integers(0, 600), st.integers(0, 600))


@given(LENGTHS, LIMITS)
def test_every_text_is_in_one_batch_within_the_limits(
    lengths: list[int], limits: BatchLimits
) -> None:
    batches = list(batch_by_length(lengths, limits))
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        tokens = sum(lengths[i] for i in batch)
        assert len(batch) == 1 or tokens <= limits.tokens
        assert len(batch) * max(lengths[i] for i in batch) - tokens <= limits.padding


@given(LENGTHS)
def test_a_limit_of_no_tokens_gives_batches_of_one_text(lengths: list[int]) -> None:
    assert all(len(batch) == 1 for batch in batch_by_length(lengths, ONE_BY_ONE))


@given(LENGTHS, LIMITS)
def test_batches_are_ordered_by_length(lengths: list[int], limits: BatchLimits) -> None:
    order = [lengths[i] for batch in batch_by_length(lengths, limits) for i in batch]
    assert order == sorted(lengths)


ROWS = st.sets(st.integers(1, 128), min_size=1, max_size=5).map(lambda n: tuple(sorted(n)))
WIDTHS = st.sets(st.integers(1, 199), max_size=6).map(lambda n: (*sorted(n), 200))
SHAPES = st.builds(Shapes, ROWS, WIDTHS, st.integers(1, 10_000))


@given(LENGTHS, SHAPES)
def test_every_text_is_in_one_batch_of_an_allowed_shape(lengths: list[int], shapes: Shapes) -> None:
    batches = list(batch_by_shape(lengths, shapes))
    assert sorted(i for batch in batches for i in batch.texts) == list(range(len(lengths)))
    for batch in batches:
        assert batch.tokens in shapes.tokens
        assert batch.rows in shapes.rows
        assert batch.rows * batch.tokens <= shapes.budget or batch.rows == shapes.rows[0]
        assert 1 <= len(batch.texts) <= batch.rows
        narrower = [tokens for tokens in shapes.tokens if tokens < batch.tokens]
        for index in batch.texts:
            assert max(narrower, default=0) < lengths[index] <= batch.tokens


@given(LENGTHS, SHAPES)
def test_texts_of_a_width_keep_their_order_in_the_fewest_batches(
    lengths: list[int], shapes: Shapes
) -> None:
    batches = list(batch_by_shape(lengths, shapes))
    for tokens in shapes.tokens:
        own = [batch for batch in batches if batch.tokens == tokens]
        texts = [i for batch in own for i in batch.texts]
        assert texts == sorted(texts)
        assert len(own) == ceil(len(texts) / shapes.heights(tokens)[-1])
        for batch in own:
            lower = [rows for rows in shapes.heights(tokens) if rows < batch.rows]
            assert len(batch.texts) > max(lower, default=0)


def test_a_text_longer_than_every_shape_is_an_error() -> None:
    with pytest.raises(ValueError, match="201 tokens"):
        list(batch_by_shape([3, 201], Shapes((1,), (16, 200), 1000)))


@given(LENGTHS, LIMITS)
def test_batches_of_similar_length_have_no_empty_row(
    lengths: list[int], limits: BatchLimits
) -> None:
    for batch in plan_batches(lengths, limits):
        assert batch.rows == len(batch.texts)
        assert batch.tokens == max(lengths[i] for i in batch.texts)


TEXT = "I'm so sorry, that sounds awful."
OFFSETS = [(0, 0), (0, 1), (1, 2), (2, 3), (4, 6), (7, 9), (9, 12), (12, 13), (0, 0)]


def found(*chosen: int) -> list[str]:
    probabilities = np.zeros(len(OFFSETS), np.float32)
    probabilities[list(chosen)] = 0.9
    return [TEXT[start:end] for start, end in spans(probabilities, OFFSETS, 0.5, TEXT)]


def test_half_of_a_sentence_selects_the_sentence() -> None:
    assert found(3, 4, 5, 6) == ["I'm so sorry,"]


def test_less_than_half_of_a_sentence_selects_nothing() -> None:
    assert found(6) == []


def test_special_tokens_select_nothing() -> None:
    assert found(0, 8) == []


def test_a_probability_at_the_threshold_counts() -> None:
    assert spans(np.array([0.5], np.float32), [(0, 1)], 0.5, "a") == [(0, 1)]


@given(st.text(min_size=1, max_size=40), st.data())
def test_spans_are_ordered_disjoint_inside_the_text_and_never_empty(
    text: str, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=12)))
    offsets = [*zip(cuts[::2], cuts[1::2], strict=False)]
    probabilities = np.array(
        [data.draw(st.floats(0, 1, width=32)) for _ in offsets], dtype=np.float32
    )
    result = spans(probabilities, offsets, 0.5, text)
    flat = [edge for span in result for edge in span]
    assert flat == sorted(flat)
    assert all(0 <= start < end <= len(text) for start, end in result)
