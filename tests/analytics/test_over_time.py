"""Question 1, on platforms whose truth is known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from stream_app.analytics.questions import over_time
from stream_app.analytics.questions.clustered import NotEstimable
from stream_app.analytics.questions.over_time import (
    Activity,
    analyse,
    mixed_fit,
    monthly,
    within_fit,
)
from stream_app.analytics.questions.result import ALL, SMALL, Analysis, Context, Estimate
from stream_app.demo.simulator import Platform, World, simulate

LEARNS = World(seed=3, counsellors=80, months=30, slopes={2024: 0.02, 2025: -0.01})
LEAVES = World(seed=5, counsellors=150, months=30, leaving=0.06, leaving_by_level=-1.0)
NO_MINIMUM = Activity(turns=1, days=0)


def of(analysis: Analysis, name: str, measure: str, group: str = ALL) -> Estimate:
    [found] = [
        each
        for each in analysis.estimates
        if (each.name, each.measure, each.group) == (name, measure, group)
    ]
    return found


@pytest.fixture(scope="module")
def learning() -> Analysis:
    return analyse(simulate(LEARNS).frames, Context(), measures=["interpretations"])


@pytest.mark.parametrize(("cohort", "slope"), [("2024", 0.02), ("2025", -0.01)])
def test_the_slope_of_each_cohort_is_recovered(
    learning: Analysis, cohort: str, slope: float
) -> None:
    found = of(learning, over_time.WITHIN, "interpretations", cohort)
    assert found.value == pytest.approx(slope, abs=0.004)
    assert found.low is not None
    assert found.high is not None
    assert found.low < slope < found.high
    assert found.bundle == "synthetic-1"
    assert found.counsellors is not None
    assert found.counsellors > 10


def test_who_stays_does_not_look_like_learning() -> None:
    """Nobody changes, the less empathic leave: only the pooled trend rises."""
    found = analyse(
        simulate(LEAVES).frames, Context(), measures=["empathy_index"], activity=NO_MINIMUM
    )
    within = of(found, over_time.WITHIN, "empathy_index")
    pooled = of(found, over_time.POOLED, "empathy_index")
    assert within.low is not None
    assert within.high is not None
    assert within.low < 0 < within.high
    assert abs(within.value or 1) < 0.001
    assert (pooled.low or 0) > 0.0005


def test_a_change_of_model_is_no_change_of_people_and_breaks_the_lines() -> None:
    world = World(seed=2, counsellors=60, new_model=12, new_model_shift=0.4)
    found = analyse(simulate(world).frames, Context(), measures=["explorations"])
    within = of(found, over_time.WITHIN, "explorations")
    assert within.low is not None
    assert within.high is not None
    assert within.low < 0 < within.high
    assert within.bundle == "synthetic-1 + synthetic-2"
    assert {curve.bundle for curve in found.curves} == {"synthetic-1", "synthetic-2"}
    assert found.bundles == ["synthetic-1", "synthetic-2"]


def test_minimum_activity_leaves_out_short_stays(platform: Platform) -> None:
    sessions = platform.frames.sessions
    kept = sessions[over_time.active(sessions, Activity(10, 365))]
    stays = kept.groupby("counsellor")["started_at"].agg(lambda at: at.max() - at.min())
    assert stays.min() >= pd.Timedelta(days=365)
    assert kept.groupby("counsellor")["counsellor_turns"].sum().min() >= 10
    gone = set(sessions["counsellor"]) - set(kept["counsellor"])
    assert gone
    found = analyse(platform.frames, Context(), activity=Activity(10, 3000))
    assert not found.estimates
    assert "longest stay" in found.notes[-1]


def test_a_cohort_about_too_few_people_is_hidden_with_another_one() -> None:
    """Of three cohorts one is small: its figures would follow from the total and the others."""
    frames = simulate(World(seed=4, counsellors=60, months=40, joining_months=24)).frames
    sessions = frames.sessions.copy()
    late = sorted(set(sessions.loc[sessions["cohort"] == 2025, "counsellor"]))[:3]
    sessions.loc[sessions["counsellor"].isin(late), "cohort"] = 2026
    found = analyse(
        replace(frames, sessions=sessions),
        Context(),
        measures=["empathy_index"],
        activity=NO_MINIMUM,
    )
    hidden = {each.group for each in found.estimates if each.problem == SMALL}
    assert "2026" in hidden
    assert len(hidden) == 2
    assert all(each.n is None for each in found.estimates if each.group in hidden)
    for curve in found.curves:
        for point in curve.points:
            assert (point.n is None) == (point.value is None)


def test_bands_hold_the_mean_and_narrow_with_more_counsellors() -> None:
    def width(counsellors: int) -> float:
        frames = simulate(World(seed=1, counsellors=counsellors, joining_months=1)).frames
        found = analyse(frames, Context(), measures=["empathy_index"])
        [curve] = [curve for curve in found.curves if curve.group == ALL]
        some = [point for point in curve.points if point.value is not None][:12]
        for point in some:
            assert (point.low or 0) < (point.value or 0) < (point.high or 0)
        return float(np.mean([(point.high or 0) - (point.low or 0) for point in some]))

    assert width(160) < 0.75 * width(40)


def test_the_mixed_model_agrees_with_the_equations() -> None:
    sessions = simulate(LEARNS).frames.sessions
    one = within_fit(sessions, "empathy_index")
    other = mixed_fit(monthly(sessions, "empathy_index"), "empathy_index")
    assert one.terms["months"].value == pytest.approx(other.value, abs=5e-4)


def test_a_mixed_model_that_does_not_converge_says_so() -> None:
    cells = pd.DataFrame(
        {
            "counsellor": np.repeat(["a", "b", "c", "d", "e", "f"], 2),
            "bundle": "x",
            "months": np.tile([0.5, 1.5], 6),
            "y": 0.25,
        }
    )
    with pytest.raises(NotEstimable, match="does not converge"):
        mixed_fit(cells, "y")


def test_a_few_counsellors_are_not_enough() -> None:
    frames = simulate(World(counsellors=4, joining_months=1)).frames
    with pytest.raises(NotEstimable, match="not enough data: 4 counsellors"):
        within_fit(frames.sessions, "empathy_index")
    found = analyse(frames, Context())
    assert all(each.value is None for each in found.estimates)
    assert found.sessions is None


def test_weeks_of_the_calendar_begin_on_mondays() -> None:
    frames = simulate(World(joining_months=1)).frames
    found = analyse(frames, Context(), measures=["empathy_index"], calendar=True)
    [curve] = found.curves
    assert {pd.Timestamp(point.label).weekday() for point in curve.points} == {0}
    first = frames.sessions["started_at"].min()
    assert pd.Timestamp(curve.points[0].label, tz="UTC") <= first
