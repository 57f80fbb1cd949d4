"""Charts of curves with bands: where lines end, and what they say without the picture."""

import re

from stream_app.analytics.result import Curve, Point
from stream_app.web.console.band_chart import chart, in_words, runs


def point(x: float, value: float | None = 0.5) -> Point:
    known = value is not None
    low, high = (value - 0.1, value + 0.1) if known else (None, None)
    return Point(x, f"week {x:.0f}", value, low, high, 20 if known else None)


def curve(*points: Point, bundle: str = "one", group: str = "all") -> Curve:
    return Curve("title", "measure", group, bundle, "calendar week", "level (0-2)", list(points))


def test_a_line_ends_at_a_hidden_point_and_at_a_missing_week() -> None:
    points = [point(0), point(7), point(14, None), point(21), point(28), point(42)]
    assert [[p.x for p in run] for run in runs(points, 7 * 1.6)] == [[0, 7], [21, 28], [42]]


def test_months_of_different_length_are_joined() -> None:
    found = list(runs([point(0), point(31), point(59), point(90)], 28 * 1.6))
    assert len(found) == 1


def test_no_line_joins_two_models() -> None:
    drawn = chart([curve(point(0), point(7)), curve(point(14), point(21), bundle="two")])
    assert drawn.count("<polyline") == 2
    assert drawn.count("<polygon") == 2
    assert len(re.findall(r'class="model".*?>two</text>', drawn)) == 1


def test_groups_have_styles_of_their_own_and_keep_them_across_models() -> None:
    drawn = chart(
        [
            curve(point(0), point(7), group="2025"),
            curve(point(0), point(7), group="2026"),
            curve(point(14), point(21), group="2026", bundle="two"),
        ]
    )
    assert re.findall(r'class="series style-(\d)"', drawn) == ["0", "1", "1"]


def test_a_single_point_has_its_interval() -> None:
    drawn = chart([curve(point(3))])
    assert re.search(r'class="point style-0">.*?<line .*?<circle', drawn)
    assert "week 3: 0.5 [0.4, 0.6], n 20, one" in drawn


def test_the_axis_of_counts_begins_at_zero() -> None:
    counts = [Point(x, str(x), 40.0 + x, None, None, 40) for x in (0.0, 7.0)]
    assert 'aria-hidden="true">0</text>' in chart([curve(*counts)])
    assert 'aria-hidden="true">0</text>' not in chart([curve(point(0), point(7))])


def test_nothing_is_drawn_if_everything_is_hidden() -> None:
    assert chart([curve(point(0, None), point(7, None))]) == ""


def test_bundle_names_are_escaped_and_words_have_the_numbers() -> None:
    curves = [curve(point(0, 0.25), point(7, 0.75), bundle="<b>&")]
    assert "<b>&" not in chart([*curves, curve(point(14), bundle="x")])
    assert "0.25 (week 0) to 0.75 (week 7), 2 points" in in_words(curves)
