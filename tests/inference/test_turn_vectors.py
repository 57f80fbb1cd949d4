"""The stored form of a turn's vectors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stream_app.inference import turn_vectors

FINITE = st.floats(-1e4, 1e4, width=32)
TURNS = arrays.arrays(np.float32, st.tuples(st.integers(1, 4), st.just(2), st.integers(1, 8)))


@given(st.data())
def test_numbers_differ_by_no_more_than_half_a_step(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(1, 4), st.just(2), st.integers(1, 8)))
    vectors = data.draw(arrays.arrays(np.float32, shape, elements=FINITE))
    found = turn_vectors.unpack(turn_vectors.pack(vectors))
    step = np.abs(vectors).max(axis=2, keepdims=True) / 127
    assert found.shape == vectors.shape
    assert (np.abs(found - vectors) <= 0.501 * step + 1e-30).all()


@given(TURNS)
def test_a_turn_depends_on_no_other(vectors: np.ndarray) -> None:
    packed = turn_vectors.pack(vectors)
    assert packed == [turn_vectors.pack(vectors[row : row + 1])[0] for row in range(len(vectors))]
    together = turn_vectors.unpack(packed)
    alone = np.concatenate([turn_vectors.unpack([one]) for one in packed])
    np.testing.assert_array_equal(together, alone)


def test_a_vector_takes_a_byte_for_each_number_and_nine_for_a_turn() -> None:
    [packed] = turn_vectors.pack(np.ones((1, 2, 384), np.float32))
    assert len(packed) == 2 * 384 + 9


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_vector_that_is_not_finite_stays_so_and_spoils_no_other(bad: float) -> None:
    vectors = np.ones((2, 2, 4), np.float32)
    vectors[0, 1, 2] = bad
    found = turn_vectors.unpack(turn_vectors.pack(vectors))
    assert np.isnan(found[0, 1]).all()
    assert np.isfinite(found[0, 0]).all()
    assert np.isfinite(found[1]).all()


def test_half_floats_of_earlier_releases_are_read_among_others() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(3, 2, 6)).astype(np.float16)
    packed = turn_vectors.pack(vectors.astype(np.float32))
    packed[1] = vectors[1].tobytes()
    found = turn_vectors.unpack(packed)
    np.testing.assert_array_equal(found[1], vectors[1].astype(np.float32))
    np.testing.assert_allclose(found, vectors.astype(np.float32), atol=0.02)
    assert turn_vectors.unpack([vectors[0].tobytes()]).shape == (1, 2, 6)
