"""The answer in a sentence says what its figures say, and no more."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from stream_app.analytics.questions import (
    associations,
    drift,
    expressed_perceived,
    fairness,
    over_time,
    service_levels,
)
from stream_app.analytics.questions.result import ALL, SMALL, Analysis, Estimate
from stream_app.web.console.analytics import answers

DAY = date(2026, 3, 2)
BASE = Estimate("", "empathy_index", ALL, "index (0-1)", 0.1, 0.05, 0.15, 1200, 24, "one", p=0.001)
UNSURE = {"value": 0.01, "low": -0.02, "high": 0.04, "p": 0.5}


def analysis(question: str, *estimates: Estimate, notes: tuple[str, ...] = ()) -> Analysis:
    return Analysis(
        question,
        *("title", "about", "method", "source", "", ""),
        *(1200, 24, ["one"], []),
        estimates=list(estimates),
        notes=list(notes),
    )


def said(
    question: str,
    *estimates: Estimate,
    at: date | None = None,
    what: str = "",
    trained: str = "",
) -> str:
    found = analysis(question, *estimates)
    return answers.sentence(found, estimates, at=at, what=what, trained=trained)


def jump(**changes: object) -> Estimate:
    return replace(BASE, name=service_levels.JUMP, **changes)


def test_a_training_with_an_effect() -> None:
    told = said(service_levels.QUESTION, jump(), at=DAY, what="training “Listening”")
    assert told == (
        "Since the training “Listening” on 2 March 2026, the empathy index is 0.100 higher than "
        "expected from the trend before (95 % interval 0.050 to 0.150, 24 counsellors, "
        "n = 1,200). Whatever else changed in that week would look the same."
    )
    lower = jump(value=-0.1, low=-0.15, high=-0.05)
    assert "0.100 lower than expected from the trend" in said(
        service_levels.QUESTION, lower, at=DAY
    )


def test_a_training_whose_effect_may_be_chance() -> None:
    told = said(service_levels.QUESTION, jump(**UNSURE), at=DAY)
    assert told.startswith("No change of the empathy index with 2 March 2026 can be shown")
    assert "0.010 (95 % interval −0.020 to 0.040" in told
    assert "higher" not in told


def test_a_training_of_one_team_is_told_beside_the_others() -> None:
    of_north: dict[str, Any] = {"at": DAY, "what": "training “Listening”", "trained": "north"}
    told = said(service_levels.QUESTION, jump(), **of_north)
    assert told == (
        "Since the training “Listening” on 2 March 2026, the empathy index of team north is 0.100 "
        "higher than expected from the other teams (95 % interval 0.050 to 0.150, 24 "
        "counsellors, n = 1,200). Whatever else changed for this team alone in that week would "
        "look the same."
    )
    unsure = said(service_levels.QUESTION, jump(**UNSURE), **of_north)
    assert "can be shown beyond what the other teams show: the estimate" in unsure
    none = jump(value=None, low=None, high=None, p=None, problem="too few weeks")
    assert said(service_levels.QUESTION, none, **of_north) == (
        "Whether the empathy index of team north changed with the training “Listening” on 2 March "
        "2026, compared with the other teams, cannot be said: too few weeks."
    )


def test_a_change_of_a_time_is_a_ratio() -> None:
    faster = jump(measure="first_answer", unit="ratio", value=0.6, low=0.5, high=0.7)
    told = said(service_levels.QUESTION, faster, at=DAY)
    assert "the time to the first answer is 0.600 times as long as expected from" in told


def test_what_cannot_be_estimated_says_why() -> None:
    none = jump(value=None, low=None, high=None, p=None, problem="too few weeks")
    told = said(service_levels.QUESTION, none, at=DAY, what="release “4.2”")
    assert told == (
        "Whether the empathy index changed with the release “4.2” on 2 March 2026 cannot be said: "
        "too few weeks."
    )
    hidden = Estimate(over_time.WITHIN, "explorations", ALL, "", *[None] * 5, "", problem=SMALL)
    assert "fewer than 11 clients" in said(over_time.QUESTION, hidden)


def test_without_a_date_the_level_is_told() -> None:
    level = replace(BASE, name=service_levels.TYPICAL, measure="first_answer", unit="seconds")
    told = said(service_levels.QUESTION, level)
    assert told.startswith("On average, the time to the first answer is 0.100 seconds")
    assert told.endswith("Choose a date to see whether something changed then.")
    rules = [
        replace(BASE, name=service_levels.TYPICAL, measure="precision", group=f"rule {place}")
        for place in range(5)
    ]
    told = said(service_levels.QUESTION, *rules, at=DAY)
    assert "0.100 for rule 0" in told
    assert "2 more in the table" in told
    assert "is not estimated" in told


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "the empathy index rises by 0.100 per month since joining"),
        ({"value": -0.1}, "the empathy index falls by 0.100 per month"),
        (UNSURE, "No change of the empathy index within the same counsellors can be shown"),
    ],
)
def test_change_over_time(changes: dict[str, object], expected: str) -> None:
    assert expected in said(over_time.QUESTION, replace(BASE, name=over_time.WITHIN, **changes))


def test_many_comparisons_tell_how_many_are_beyond_chance() -> None:
    one = replace(BASE, name="strong reactions", unit="rate ratio", value=1.5, low=1.3, high=1.7)
    other = replace(one, name="weak reactions", value=1.0, low=0.9, high=1.1, p=0.8)
    told = said(associations.QUESTION, one, other, replace(one, name="x", value=0.4, p=0.01))
    assert told.startswith("2 of 3 comparisons are beyond chance. The largest: ")
    assert "x: rate ratio 0.400" in told, "0.4 is further from 1 than 1.5"
    told = said(associations.QUESTION, other)
    assert told.startswith("No difference beyond chance was found in 1 comparison.")
    assert "does not show that there is none" in told


def test_a_correction_decides_and_levels_are_no_comparisons() -> None:
    level = replace(BASE, name=fairness.RATE, group="channel chat")
    found = replace(BASE, name=fairness.DIFFERENCE, group="channel chat", p=0.01, p_adjusted=0.2)
    told = said(fairness.QUESTION, level, found)
    assert told.startswith("No difference beyond chance was found in 1 comparison after")
    sure = replace(found, p_adjusted=0.02, measure="sessions with an alert", value=-0.1)
    told = said(fairness.QUESTION, level, sure)
    assert "the share of sessions with an alert is 0.100 lower for channel chat than" in told
    assert said(fairness.QUESTION, level) == "Nothing can be compared here."


def test_fairness_tells_small_differences_and_groups_without_a_figure() -> None:
    large = replace(BASE, name=fairness.DIFFERENCE, group="channel chat", p=0.01, p_adjusted=0.02)
    small = replace(large, group="lang en", value=0.02, low=0.01, high=0.03)
    assert "small" not in said(fairness.QUESTION, large)
    told = said(fairness.QUESTION, large, small)
    assert told.startswith("2 of 2 comparisons are beyond chance")
    assert told.endswith(
        "1 of these 2 differences is small: less than 5 percentage points even at the far end of "
        "the interval."
    )
    assert "It is small: less than 5" in said(fairness.QUESTION, small)
    none = replace(BASE, name=fairness.RATE, group="lang cy", value=None, problem="not enough data")
    told = said(fairness.QUESTION, small, none)
    assert "Some figures of 1 group are withheld, because the group, or the one" in told


def test_an_interval_decides_where_there_is_no_test() -> None:
    found = replace(BASE, name=expressed_perceived.OUTCOME, p=None)
    assert answers.chance(found) == "beyond chance"
    assert answers.chance(replace(found, low=-0.1)) == "may be chance"
    assert answers.chance(replace(found, low=None)) == "", "a figure without an interval is no test"


def test_drift_counts_checks_and_names_the_largest_shift() -> None:
    quiet = replace(BASE, name=drift.INDEX, measure="strategy", p_adjusted=0.9)
    told = said(drift.QUESTION, quiet, quiet)
    assert told.startswith("No shift worth a look was found in 2 checks.")
    large = replace(quiet, value=0.3, p_adjusted=0.001)
    told = said(drift.QUESTION, quiet, large)
    assert told.startswith("One shift is beyond chance and large enough for a look: ")
    assert "of strategy, 0.300" in told


def test_without_figures_the_last_note_says_why() -> None:
    found = analysis(over_time.QUESTION, notes=("Minimum activity.", "Nobody stayed."))
    assert answers.sentence(found, []) == "There is no answer yet. Nobody stayed."


def test_a_plot_compares_figures_of_one_kind() -> None:
    rates = [
        replace(BASE, name=fairness.RATE, group=f"channel {name}", unit="share")
        for name in ("chat", "phone")
    ]
    gap = replace(BASE, name=fairness.DIFFERENCE, group="channel chat", unit="share")
    plot = answers.plot(fairness.QUESTION, [*rates, gap], one_measure=True)
    assert plot is not None
    assert [line.label for line in plot.lines] == ["Channel chat", "Channel phone"]
    assert plot.null is None
    hidden = replace(BASE, value=None)
    assert answers.plot(fairness.QUESTION, [hidden], one_measure=True) is None
    difference = answers.plot(fairness.QUESTION, [gap], one_measure=True)
    assert difference is not None
    assert difference.null == 0.0
