"""Figures with intervals on a common axis."""

import re

from stream_app.analytics.questions.result import ALL, Estimate
from stream_app.web.console.plots.interval_chart import MOST, chart


def estimate(value: float | None, low: float | None, high: float | None) -> Estimate:
    return Estimate("x", "m", ALL, "share", value, low, high, 50, 9, "one")


def places(drawn: str) -> list[float]:
    return [float(place) for place in re.findall(r'[cx][x12]="([\d.]+)%"', drawn)]


def test_every_line_lies_within_the_axis_and_hidden_figures_have_none() -> None:
    found = chart(
        [("a", estimate(0.9, 0.7, 1.1)), ("b", estimate(None, None, None))], None, (0.0, 1.0)
    )
    assert found is not None
    assert [line.label for line in found.lines] == ["a"]
    assert all(0 <= place <= 100 for place in places(found.lines[0].drawn))
    assert max(float(label) for label in re.findall(r">([\d.]+)</text>", found.axis)) == 1.0
    assert chart([("b", estimate(None, None, None))], 0.0) is None


def test_the_line_of_no_difference_is_always_in_the_plot() -> None:
    found = chart([("a", estimate(0.3, 0.2, 0.4))], 0.0)
    assert found is not None
    assert 'class="null" x1="2.00%"' in found.lines[0].drawn


def test_ratios_are_symmetric() -> None:
    found = chart([("a", estimate(0.5, 0.5, 0.5)), ("b", estimate(2.0, 2.0, 2.0))], 1.0)
    assert found is not None
    left, right = (places(line.drawn) for line in found.lines)
    null = left[0]
    assert null - left[2] == right[2] - null


def test_a_figure_without_an_interval_is_a_point_and_long_lists_are_cut() -> None:
    found = chart([("a", estimate(0.5, None, None))] * (MOST + 3), 0.0)
    assert found is not None
    assert len(found.lines) == MOST
    assert found.left_out == 3
    assert found.lines[0].drawn.count("<line") == 1
