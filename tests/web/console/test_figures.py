"""What stands below a figure: what it counts, and what is not shown."""

from stream_app.analytics.questions.result import Curve, Point
from stream_app.web.console.analytics.figures import Figure


def curve(*values: float | None, bundle: str = "one", first: int = 0, **changes: str) -> Curve:
    points = [
        Point(7.0 * place, f"week {place}", value, value, value, None if value is None else 1200)
        for place, value in enumerate(values, first)
    ]
    told = {"measure": "empathy_index", "group": "all", "axis": "calendar week", **changes}
    return Curve("t", told["measure"], told["group"], bundle, told["axis"], "index (0-1)", points)


def figure(*curves: Curve, missing: str = "hidden") -> Figure:
    return Figure("Title", list(curves), [], missing)


def test_weeks_are_counted_and_not_sessions() -> None:
    found = figure(curve(0.1, None, 0.2, None))
    assert found.counted == "2,400 sessions"
    assert found.gaps == "2 of 4 weeks are not shown: too few people"
    assert figure(curve(0.1, 0.2)).gaps == ""
    assert figure(curve(None), missing="too few sessions").gaps == (
        "1 of 1 week is not shown: too few sessions"
    )


def test_a_week_of_two_models_is_one_week() -> None:
    found = figure(curve(0.1, 0.2, None), curve(None, 0.3, bundle="two", first=1))
    assert found.gaps == ""
    found = figure(curve(0.1, None), curve(None, 0.3, bundle="two", first=1))
    assert found.gaps == "1 of 3 weeks is not shown: too few people"


def test_several_lines_are_counted_by_points() -> None:
    found = figure(curve(0.1, None, group="north"), curve(0.1, 0.2, group="south"))
    assert found.gaps == "1 of 4 points is not shown: too few people"


def test_alerts_and_ratings_are_called_so() -> None:
    assert figure(curve(0.1, measure="precision")).counted == "1,200 alerts"
    assert figure(curve(0.1, axis="predicted")).counted == "1,200 ratings"
