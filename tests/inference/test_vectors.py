"""The two forms of a turn's vectors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stream_app.inference.bundle import VectorForm
from stream_app.inference.vectors import STEPS, Vectors, from_bytes, rounded, to_bytes

HIDDEN = 24
forms = pytest.mark.parametrize("form", VectorForm)


def vectors(turns: int = 40) -> Vectors:
    """Normal numbers, but for one dimension that is nearly constant and much larger."""
    chance = np.random.default_rng(3)
    made = chance.normal(0, 0.3, (turns, 2, HIDDEN))
    made[:, 0, 5] = chance.normal(-6.0, 1e-3, turns)
    return made.astype(np.float32)


@forms
def test_a_second_rounding_changes_nothing(form: VectorForm) -> None:
    once = rounded(vectors(), form)
    np.testing.assert_allclose(rounded(once, form), once, rtol=1e-6)


@forms
def test_a_turn_does_not_depend_on_the_others(form: VectorForm) -> None:
    made = vectors()
    together = to_bytes(made, form)
    assert [to_bytes(turn[None], form)[0] for turn in made] == together
    np.testing.assert_array_equal(
        from_bytes(together, HIDDEN), np.concatenate([from_bytes([one]) for one in together])
    )


def test_bytes_take_half_the_space() -> None:
    made = np.random.default_rng(1).normal(size=(1, 2, 384)).astype(np.float32)
    halves, small = (len(to_bytes(made, form)[0]) for form in VectorForm)
    assert (halves, small) == (1536, 789)


def test_a_large_dimension_does_not_coarsen_the_others() -> None:
    made = vectors()
    found = rounded(made, VectorForm.BYTES)
    np.testing.assert_array_equal(found[:, 0, 5], made[:, 0, 5])
    others = np.delete(made, 5, axis=-1)
    step = np.abs(others).max(-1, keepdims=True) / STEPS
    assert (np.abs(np.delete(found, 5, axis=-1) - others) <= 0.5001 * step).all()


@given(
    arrays.arrays(
        np.float32, st.tuples(st.integers(1, 3), st.just(2), st.integers(1, 9)),
        elements=st.floats(width=32),
    )
)  # fmt: skip
def test_any_numbers_become_finite_ones(made: Vectors) -> None:
    found = rounded(made, VectorForm.BYTES)
    assert np.isfinite(found).all()
    assert found.shape == made.shape


@pytest.mark.parametrize("hidden", [None, HIDDEN])
def test_a_window_may_have_both_forms(hidden: int | None) -> None:
    made = vectors(9)
    both = [to_bytes(turn[None], list(VectorForm)[i % 3 % 2])[0] for i, turn in enumerate(made)]
    assert len({len(turn) for turn in both}) == 2
    alone = np.concatenate([from_bytes([turn]) for turn in both])
    np.testing.assert_array_equal(from_bytes(both, hidden), alone)


@given(st.binary(max_size=48).filter(lambda raw: len(raw) % 4 == 0))
def test_any_half_floats_are_read_without_a_warning(raw: bytes) -> None:
    assert from_bytes([raw]).shape == (1, 2, len(raw) // 4)


@forms
def test_no_turns_have_no_vectors(form: VectorForm) -> None:
    assert to_bytes(np.zeros((0, 2, HIDDEN), np.float32), form) == []
    assert from_bytes([], HIDDEN).shape == (0, 2, HIDDEN)


@forms
def test_vectors_of_another_size_are_refused(form: VectorForm) -> None:
    raw = to_bytes(vectors(3), form)
    with pytest.raises(ValueError, match=r"reshape|multiple"):
        from_bytes(raw, HIDDEN - 1)
