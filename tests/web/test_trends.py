"""Weekly means: sessions are the unit, and lines break at gaps and model changes."""

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from statistics import fmean

import pytest

from stream_app.findings.trends import Trend, Week, interval, trends
from stream_app.store.sessions.turn_levels import TurnLevels
from stream_app.web.console.plots.trend_chart import AXIS, HEIGHT, chart, in_words

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


def session(week: int, number: int, levels: list[int], bundle: str = "m1") -> list[TurnLevels]:
    """Turns of one session with these levels of emotional reactions."""
    return [
        TurnLevels(
            session_id=f"{week}-{number}",
            seq=2 * i + 1,
            bundle=bundle,
            started_at=MONDAY + timedelta(weeks=week, hours=20 * number),
            levels={"emotional_reactions": level},
            abstained=[],
        )
        for i, level in enumerate(levels)
    ]


def first(turns: list[TurnLevels]) -> Trend:
    return trends(turns)[0]


def full(week: int, bundle: str = "m1") -> list[TurnLevels]:
    """A week with enough sessions."""
    return [turn for n in range(3) for turn in session(week, n, [0, n, 2], bundle)]


def test_a_long_session_counts_as_much_as_a_short_one() -> None:
    turns = session(0, 0, [2]) + session(0, 1, [0] * 9) + session(0, 2, [1, 1])
    [week] = first(turns).weeks
    assert (week.n, week.mean) == (3, pytest.approx(1.0))


def test_the_interval_is_students_t() -> None:
    """Of 0, 1, 2: mean 1, standard error 1/√3, t(0.975, 2) = 4.3027."""
    low, high = interval([0.0, 1.0, 2.0])
    assert (low, high) == (
        pytest.approx(1 - 4.3027 / 3**0.5, abs=1e-3),
        pytest.approx(3.484, abs=1e-3),
    )


def test_two_sessions_are_too_few_for_a_mean() -> None:
    [week] = first(session(0, 0, [1]) + session(0, 1, [2])).weeks
    assert (week.n, week.mean, week.low) == (2, None, None)


def test_turns_on_which_the_head_abstained_do_not_count() -> None:
    levels = session(0, 0, [2])[0]
    abstained = replace(levels, seq=3, abstained=["emotional_reactions"])
    assert first([abstained]).weeks == []


def test_a_session_belongs_to_the_week_of_its_start() -> None:
    sunday = session(0, 0, [1])[0].started_at + timedelta(days=6, hours=14)
    assert sunday.isoweekday() == 7
    [turn] = session(0, 0, [1])
    late = replace(turn, started_at=sunday)
    assert [week.begins for week in first([late]).weeks] == [date(2026, 3, 2)]


def test_the_line_breaks_at_missing_weeks_and_model_changes() -> None:
    turns = full(0) + full(1) + full(3) + full(4) + full(5, "m2") + full(6, "m2")
    trend = first(turns)
    assert [[(w.begins - MONDAY.date()).days // 7 for w in line] for line in trend.lines] == [
        [0, 1],
        [3, 4],
        [5, 6],
    ]
    drawn = str(chart(trend))
    assert drawn.count('class="line"') == 3
    assert drawn.count('class="model"') == 1
    assert drawn.count("<circle") == 6
    assert "scored by 2 models (the line breaks where the model changes)" in in_words(trend)


def test_a_week_with_two_models_has_two_means_and_no_line() -> None:
    trend = first(full(0, "m1") + [t for n in range(3) for t in session(0, n + 5, [1], "m2")])
    assert [week.bundle for week in trend.weeks] == ["m1", "m2"]
    assert all(len(line) == 1 for line in trend.lines)


def test_the_axis_has_dates_and_units() -> None:
    turns = [turn for week in range(12) for turn in full(week)]
    drawn = str(chart(first(turns)))
    dates = re.findall(r">(\d\d \w{3})</text>", drawn)
    assert dates == ["02 Mar", "30 Mar", "20 Apr", "18 May"]
    assert AXIS in drawn
    assert re.findall(r">(\d\d \w{3})</text>", str(chart(first(full(0))))) == ["02 Mar"]
    over_new_year = str(chart(first(full(0) + full(52))))
    assert ">02 Mar 2026</text>" in over_new_year


def test_a_chart_has_a_text_alternative_and_stays_within_its_frame() -> None:
    turns = full(0)
    trend = first(turns)
    drawn = str(chart(trend))
    assert 'role="img"' in drawn
    assert f"{fmean([2 / 3, 1, 4 / 3]):.2f}" in drawn
    assert all(0 <= float(y) <= HEIGHT for y in re.findall(r'\s(?:y\d?|cy)="([\d.]+)"', drawn))
    empty = Trend("explorations", [Week(date(2026, 3, 2), "m1", 1, None, None, None)])
    assert "no week has enough sessions" in str(chart(empty))
