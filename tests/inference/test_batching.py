import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stream_app.inference.batching import ONE_BY_ONE, Limits, by_length
from stream_app.inference.rationale import spans

LENGTHS = st.lists(st.integers(1, 200), max_size=60)


LIMITS = st.builds(Limits, st.integers(0, 600), st.integers(0, 600))


@given(LENGTHS, LIMITS)
def test_every_text_is_in_one_batch_within_the_limits(lengths: list[int], limits: Limits) -> None:
    batches = list(by_length(lengths, limits))
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        size = len(batch) * max(lengths[i] for i in batch)
        assert len(batch) == 1 or size <= limits.tokens
        assert size - sum(lengths[i] for i in batch) <= limits.padding


@given(LENGTHS)
def test_no_tokens_mean_one_text_a_batch(lengths: list[int]) -> None:
    assert all(len(batch) == 1 for batch in by_length(lengths, ONE_BY_ONE))


@given(LENGTHS, LIMITS)
def test_batches_go_from_short_to_long(lengths: list[int], limits: Limits) -> None:
    order = [lengths[i] for batch in by_length(lengths, limits) for i in batch]
    assert order == sorted(lengths)


TEXT = "I'm so sorry, that sounds awful."
OFFSETS = [(0, 0), (0, 1), (1, 2), (2, 3), (4, 6), (7, 9), (9, 12), (12, 13), (0, 0)]


def found(*chosen: int) -> list[str]:
    probabilities = np.zeros(len(OFFSETS), np.float32)
    probabilities[list(chosen)] = 0.9
    return [TEXT[start:end] for start, end in spans(probabilities, OFFSETS, 0.5, TEXT)]


def test_half_of_a_sentence_brings_the_sentence() -> None:
    assert found(3, 4, 5, 6) == ["I'm so sorry,"]


def test_less_than_half_of_it_brings_nothing() -> None:
    assert found(6) == []


def test_special_tokens_bring_nothing() -> None:
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
