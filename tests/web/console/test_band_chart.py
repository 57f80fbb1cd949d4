"""Charts of curves with bands: where lines end, and what they say without the picture."""

import re
from datetime import date, timedelta

from stream_app.analytics.questions.marked_days import MarkedDay
from stream_app.analytics.questions.result import Curve, Point
from stream_app.analytics.questions.shown_curves import EPOCH
from stream_app.web.console.plots.band_chart import chart, in_words, marks, runs


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
    assert len(re.findall(r'class="mark"><line .*?>A</text>', drawn)) == 1


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


def days(*places: int) -> list[MarkedDay]:
    return [MarkedDay(EPOCH + timedelta(days=x), "training", f"of day {x}") for x in places]


def test_events_and_changes_of_the_model_are_lettered_in_order() -> None:
    curves = [curve(point(0), point(7)), curve(point(14), point(21), bundle="two")]
    found = marks(curves, days(3, 20))
    assert [(each.letter, each.words) for each in found] == [
        ("A", "training “of day 3”"),
        ("B", "model two begins to score"),
        ("C", "training “of day 20”"),
    ]


def test_an_event_outside_the_curve_is_not_marked_but_one_of_its_last_week_is() -> None:
    curves = [curve(point(7), point(14))]
    assert [each.when for each in marks(curves, days(6, 20, 21))] == ["1970-01-21"]
    assert marks([], days(6)) == []


def test_a_curve_by_months_since_joining_has_no_dates_to_mark() -> None:
    by_month = [Curve("t", "m", "all", "one", "months since joining", "index (0-1)", [point(1)])]
    assert marks(by_month, [MarkedDay(date(1970, 1, 2), "release", "4.2")]) == []


def test_letters_of_close_marks_share_a_place_in_their_order() -> None:
    weeks = [curve(*(point(7.0 * week) for week in range(53)))]
    drawn = chart(weeks, marks(weeks, days(100, 103, 106, 300)))

    assert re.findall(r'y="10"[^>]*>([A-Z ]+)</text>', drawn) == ["A B C", "D"]


def test_no_axis_passes_the_end_of_its_scale() -> None:
    wide = Curve(
        "t",
        "m",
        "all",
        "one",
        "calendar week",
        "share (0-1)",
        [Point(x, str(x), 0.97, 0.9, 1.06, 20) for x in (0.0, 7.0)],
    )
    drawn = chart([wide])
    labels = [float(text) for text in re.findall(r'aria-hidden="true">([\d.]+)</text>', drawn)]
    assert max(label for label in labels if label < 7) == 1.0
    heights = [float(y) for y in re.findall(r",(-?[\d.]+)", drawn.split("<polygon")[1])]
    assert min(heights) >= 0
