import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import cost
from benchmarks.cost import Cost, Point, Scale
from benchmarks.load.rounds import median, ratio
from benchmarks.parts import length


@given(a=st.floats(1e-5, 1e-2), b=st.floats(1e-6, 1e-3))
def test_a_noiseless_line_is_recovered(a: float, b: float) -> None:
    points = [Point(tokens, 1.0 / (a + b * tokens)) for tokens in (4, 8, 16, 32, 64, 128)]
    found = cost.fit(points)
    assert found.a == pytest.approx(a, abs=1e-7)
    assert found.b == pytest.approx(b, rel=1e-3, abs=1e-9)


def test_every_length_has_the_same_weight() -> None:
    """Relative errors of 10 % at both ends have the same weight."""
    points = [Point(4, 1100.0), Point(100, 90.0)]
    found = cost.fit(points)
    for point in points:
        assert cost.error(found.rate(point.tokens), point.rate) == pytest.approx(0.0, abs=1e-3)


def test_only_products_grow_with_an_encoders_operations() -> None:
    found = Cost(0.0004, 0.0001)
    assert found.of_encoder(Scale(), 0.7) == found
    other = Scale(operations=0.25, layers=0.5)
    assert found.of_encoder(other, 1.0).b == pytest.approx(0.25 * found.b)
    assert found.of_encoder(other, 0.0).b == pytest.approx(0.5 * found.b)
    assert found.of_encoder(other, 0.7).a == found.a


@given(operations=st.floats(0.1, 10), layers=st.floats(0.1, 10), products=st.floats(0, 1))
def test_a_prediction_from_the_true_shares_has_no_error(
    operations: float, layers: float, products: float
) -> None:
    known = [(tokens, [1.0 / (0.0001 + 0.00005 * tokens)]) for tokens in (4.0, 16.0, 64.0)]
    b = 0.00005 * (products * operations + (1.0 - products) * layers)
    measured = [1.0 / (0.0001 + b * 23.0)]
    found = length.off(known, 23.0, measured, Scale(operations, layers), [products])
    assert found == pytest.approx(0.0, abs=1e-3)


def test_a_single_length_gives_no_line() -> None:
    with pytest.raises(ValueError, match="two lengths"):
        cost.fit([Point(4, 100.0), Point(4, 110.0)])


def test_a_ratio_is_the_median_of_the_rounds_not_that_of_the_medians() -> None:
    """The machine was slow in the second round, for both lines."""
    over, under = [90.0, 9.0, 100.0], [100.0, 10.0, 100.0]
    assert ratio(over, under) == pytest.approx(0.9)
    assert median(over) / median(under) == pytest.approx(0.9)
    assert ratio([90.0, 50.0], [100.0, 50.0]) == pytest.approx(0.95)
    with pytest.raises(ValueError, match="longer"):
        ratio([1.0], [1.0, 2.0])
