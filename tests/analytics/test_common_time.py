"""Changes that have another explanation get no estimate, and shared weeks are no evidence."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from benchmarks.coverage import EFFECTS, STEP, UNCLEAN, WORLDS
from stream_app.analytics.questions import over_time, service_levels
from stream_app.analytics.questions.clustered import NotEstimable, Term
from stream_app.analytics.questions.common_time import TWO_YEARS, Panel, too_short
from stream_app.analytics.questions.frames import DAYS_A_MONTH
from stream_app.analytics.questions.result import Analysis, Context, Estimate
from stream_app.analytics.questions.service_levels import (
    APART,
    JUMP,
    PLACEBO,
    SLOPE,
    Change,
    Series,
    changed,
)
from stream_app.demo.simulator import World, simulate

INDEX = "empathy_index"


def asked(world: World, trained: str | None = None) -> Analysis:
    at = world.begins + timedelta(days=(world.training or 0) * DAYS_A_MONTH)
    return service_levels.analyse(
        simulate(world).frames, Context(), at=at, measures=(INDEX,), trained=trained
    )


def of(analysis: Analysis, name: str) -> Estimate:
    [found] = [each for each in analysis.estimates if each.name == name]
    return found


@pytest.mark.parametrize("world", ["model on the date", "one stray"])
def test_a_model_change_on_the_date_is_named_and_gives_no_estimate(world: str) -> None:
    found = of(asked(replace(UNCLEAN[world], seed=2)), JUMP)
    assert found.value is None
    assert "can't be told apart from the model change of" in (found.problem or "")
    assert "2025" in (found.problem or "")


def test_the_first_answer_is_no_models() -> None:
    """Seconds do not depend on who scores, so another model is no other explanation."""
    world = replace(UNCLEAN["model on the date"], seed=2)
    at = world.begins + timedelta(days=(world.training or 0) * DAYS_A_MONTH)
    frames = simulate(world).frames
    found = service_levels.analyse(frames, Context(), at=at, measures=("first_answer",))
    assert of(found, JUMP).value is not None


def test_half_a_year_cannot_tell_a_change_from_the_season() -> None:
    world = World(seed=1, months=6, joining_months=1, sessions_a_month=6, training=3.0)
    found = asked(world)
    assert "the season of the year" in (of(found, JUMP).problem or "")
    assert "less than two years" in found.warnings[0]


def test_two_years_need_no_warning() -> None:
    assert not too_short(pd.Series([0, TWO_YEARS - 1]))
    assert too_short(pd.Series([0, TWO_YEARS - 2]))


def test_a_change_is_found_although_weeks_differ_and_stands_beside_other_dates() -> None:
    found = asked(replace(STEP, seed=5))
    jump, placebo = of(found, JUMP), of(found, PLACEBO)
    assert jump.low is not None
    assert jump.high is not None
    assert jump.low < 0.05 < jump.high
    assert placebo.value is not None
    assert (placebo.n or 0) >= service_levels.FEWEST_DATES
    assert of(found, SLOPE).value is not None


def test_the_others_are_the_comparison_of_a_trained_team() -> None:
    """The season and a model change concern both teams; the training of all is no difference."""
    world = replace(UNCLEAN["season"], seed=3, training_jump=0.3, new_model=13.0)
    found = asked(world, trained="north")
    jump = of(found, JUMP)
    assert jump.low is not None
    assert jump.high is not None
    assert jump.low < 0 < jump.high
    assert of(found, APART).value is not None
    assert not found.warnings


def test_a_trained_team_without_others_has_no_comparison() -> None:
    world = replace(STEP, seed=1)
    found = asked(world, trained="no such team")
    assert "weeks before or after" in (of(found, JUMP).problem or "")


def test_a_step_is_not_told_as_a_slope() -> None:
    world = replace(EFFECTS, seed=4, training_jump=0.3)
    with pytest.raises(NotEstimable, match="a sudden change about 202"):
        over_time.within_fit(simulate(world).frames.sessions, INDEX)


def test_a_slope_is_still_found() -> None:
    fit = over_time.within_fit(simulate(replace(WORLDS["slopes"], seed=1)).frames.sessions, INDEX)
    term = fit.terms["months"]
    assert term.low > 0
    assert term.low < 0.01 < term.high


def test_many_changes_elsewhere_mean_that_one_at_the_date_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sessions = simulate(replace(STEP, seed=5)).frames.sessions
    clear, none = Term(0.1, 0.05, 0.15, 0.001), Term(0.0, -0.1, 0.1, 0.9)
    monkeypatch.setattr(Series, "elsewhere", lambda _: [clear] * 2 + [none] * 4)
    at = STEP.begins + timedelta(days=13 * DAYS_A_MONTH)
    with pytest.raises(NotEstimable, match="2 of 6 other dates show a change, too"):
        changed(sessions, INDEX, Change(pd.Timestamp(at)))


def test_each_session_and_each_counsellor_counting_once_stand_side_by_side() -> None:
    """Simpson: the busy do not change, the many others fall."""
    platform = simulate(World(seed=6, counsellors=40, months=24, joining_months=1, unequal=0.0))
    sessions = platform.frames.sessions.copy()
    names = sorted(set(sessions["counsellor"]))
    busy = sessions["counsellor"].isin(names[:8])
    sessions[INDEX] = 0.5 - 0.01 * sessions["months"] * ~busy + 0.001 * sessions[INDEX]
    many = pd.concat([sessions, *[sessions[busy]] * 9], ignore_index=True)
    frames = replace(platform.frames, sessions=many)
    found = over_time.analyse(frames, Context(), measures=[INDEX])
    by_sessions, by_people = of(found, over_time.POOLED), of(found, over_time.POOLED_PEOPLE)
    assert (by_people.value or 0) < 2 * (by_sessions.value or 0) < 0
    assert by_people.p is None


def test_free_effects_of_weeks_are_counted_where_a_team_is_compared() -> None:
    """They are no part of a cluster, so Mancl and DeRouen's correction does not know them."""
    weeks = pd.Series(np.repeat(np.arange(30), 8))
    units = np.tile(np.arange(8), 30)
    noise = np.random.default_rng(1).standard_normal(len(weeks))
    assert Panel(noise, units, weeks)._absorbed() == 0
    assert Panel(noise, units, weeks, compared=units < 4)._absorbed() == 29
