"""Questions 2 to 7 on a platform whose effects are known."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from statsmodels.genmod.cov_struct import Independence
from statsmodels.genmod.generalized_estimating_equations import GEE
from statsmodels.tools import add_constant

from benchmarks.coverage import EVENT
from stream_app.analytics.questions import (
    associations,
    attributes,
    drift,
    expressed_perceived,
    fairness,
    pairs,
    service_levels,
)
from stream_app.analytics.questions.clustered import FAMILIES, gee, holm
from stream_app.analytics.questions.frames import DAYS_A_MONTH
from stream_app.analytics.questions.questions import QUESTIONS, Asked, answer
from stream_app.analytics.questions.result import Context
from stream_app.cli.reporting import ANALYSES
from stream_app.demo.simulator import Platform, World, simulate
from stream_app.store.stream.repository import Store
from tests.analytics.finding import excludes, holds, of

NOTHING = Context()
QUIET = World(seed=7, counsellors=40)


@pytest.fixture(scope="module")
def quiet() -> Platform:
    return simulate(QUIET)


def training(platform: Platform) -> pd.Timestamp:
    return pd.Timestamp(platform.world.begins + timedelta(days=EVENT * DAYS_A_MONTH))


def test_the_command_names_every_question() -> None:
    assert set(ANALYSES) == set(QUESTIONS)


def test_likes_and_replies_go_with_the_levels_that_they_were_drawn_from(
    eventful: Platform,
) -> None:
    found = associations.analyse(eventful.frames, NOTHING)
    strong = of(found, "strong emotional reactions compared with none", "like")
    assert holds(strong, math.exp(0.4))
    assert excludes(strong, 1.0)
    assert strong.unit == "rate ratio"
    assert holds(of(found, "strong explorations compared with none", "reply"), math.exp(0.4))
    assert holds(of(found, "strong explorations compared with none", "like"), 1.0)
    rating = "one level more of interpretations in the session's mean"
    assert holds(of(found, rating, "rating of the session"), 0.3)
    assert holds(of(found, rating, "follow of the session"), math.exp(0.5))


def test_without_the_length_an_association_is_confounded_and_a_note_says_so(
    eventful: Platform,
) -> None:
    turns = eventful.frames.turns.assign(characters=np.nan)
    found = associations.analyse(replace(eventful.frames, turns=turns), NOTHING)
    assert "Not adjusted for length: unknown for 100%" in found.notes[0]
    adjusted = associations.analyse(eventful.frames, NOTHING)
    name = "strong interpretations compared with none"
    more, less = of(found, name, "like"), of(adjusted, name, "like")
    assert (more.value or 0) > (less.value or 0) + 0.02


def test_withdrawn_outcomes_do_not_count(eventful: Platform) -> None:
    outcomes = eventful.frames.outcomes.copy()
    outcomes.loc[outcomes["kind"] == "like", "value"] = 0.0
    found = associations.analyse(replace(eventful.frames, outcomes=outcomes), NOTHING)
    assert not [each for each in found.estimates if each.measure == "like"]


def test_a_platform_without_outcomes_says_so(eventful: Platform) -> None:
    none = eventful.frames.outcomes.iloc[:0]
    found = associations.analyse(replace(eventful.frames, outcomes=none), NOTHING)
    assert not found.estimates
    assert found.notes == ["There are no outcome events about these sessions."]


def test_the_change_at_a_training_is_found_at_its_date_only(eventful: Platform) -> None:
    at = training(eventful)
    found = service_levels.analyse(eventful.frames, NOTHING, at=at)
    assert holds(of(found, service_levels.JUMP, "empathy_index"), 0.075)
    assert excludes(of(found, service_levels.JUMP, "empathy_index"), 0.0)
    hasty = of(found, service_levels.JUMP, "acknowledge_minutes")
    assert holds(hasty, math.exp(-0.5))
    assert hasty.unit == "ratio"
    assert holds(of(found, service_levels.JUMP, "first_answer"), 1.0)
    wrong = at - pd.Timedelta(days=150)
    earlier = service_levels.analyse(
        eventful.frames, NOTHING, at=wrong, measures=("acknowledge_minutes",)
    )
    assert (of(earlier, service_levels.JUMP, "acknowledge_minutes").value or 0) > 0.8


def test_precision_is_a_share_of_judged_alerts(eventful: Platform) -> None:
    found = service_levels.analyse(eventful.frames, NOTHING)
    precision = of(found, service_levels.TYPICAL, "precision", "low-empathy")
    assert holds(precision, 0.7)
    assert precision.n == len(eventful.frames.alerts)
    later = eventful.frames.alerts.assign(verdict="not-now")
    none = service_levels.analyse(replace(eventful.frames, alerts=later), NOTHING)
    assert not [each for each in none.estimates if each.measure == "precision"]


def test_a_date_near_the_end_leaves_too_few_weeks(eventful: Platform) -> None:
    at = eventful.frames.sessions["started_at"].max() - pd.Timedelta(days=20)
    found = service_levels.analyse(
        eventful.frames, NOTHING, at=at, measures=("acknowledge_minutes",)
    )
    problem = of(found, service_levels.JUMP, "acknowledge_minutes").problem
    assert problem is not None
    assert "fewer than 12 weeks" in problem


def test_an_intent_goes_with_the_perceived_score_that_it_changed(eventful: Platform) -> None:
    found = expressed_perceived.analyse(eventful.frames, NOTHING)
    question = of(found, "difference", "predicted engagement", "strategy: question")
    assert holds(question, 0.05)
    assert (question.p_adjusted or 1) < 0.001
    with_it = of(found, "mean with it", "predicted engagement", "strategy: question")
    without = of(found, "mean without it", "predicted engagement", "strategy: question")
    gap = (with_it.value or 0) - (without.value or 0)
    assert gap == pytest.approx(question.value)
    for each in (question, with_it, without):
        assert each.error is not None
        assert (
            (each.low or 0) + 1.9 * each.error
            < (each.value or 0)
            < (each.low or 0) + 2.2 * each.error
        )
    for head in ("understanding", "sympathy", "helpfulness"):
        other = of(found, "difference", f"predicted {head}", "strategy: question")
        assert (other.p_adjusted or 0) > 0.05


def test_people_s_ratings_of_perceived_heads_have_rows_of_their_own(eventful: Platform) -> None:
    turns = eventful.frames.turns
    said = turns[turns["role"] == "counsellor"].head(2000)
    rated = pd.DataFrame(
        {
            "session_id": said["session_id"],
            "seq": said["seq"].astype(float),
            "head": "sympathy",
            "value": (said["head.strategy"] == "others").astype(float),
            "model": 1.0,
            "probability": 0.8,
        }
    )
    rated.iloc[::40, rated.columns.get_loc("value")] = 0.5  # a half: two people differ
    found = expressed_perceived.analyse(replace(eventful.frames, ratings=rated), NOTHING)
    people = of(found, "difference", "rated sympathy", "strategy: others")
    assert (people.value or 0) > 0.8


def test_pairs_differ_by_what_was_put_in(eventful: Platform) -> None:
    found = pairs.analyse(eventful.frames, NOTHING, eventful.attributes)
    both = of(found, pairs.INTERACTION, "empathy_index", "a and b")
    assert holds(both, 0.1)
    assert (both.p_adjusted or 1) < 0.01


def test_pairs_of_a_quiet_platform_do_not_differ(quiet: Platform) -> None:
    found = pairs.analyse(quiet.frames, NOTHING, quiet.attributes)
    tested = [each.p_adjusted for each in found.estimates if each.p_adjusted is not None]
    assert len(tested) == len(pairs.MEASURES)
    assert min(tested) > 0.05


def test_pairs_about_few_people_give_no_figure(quiet: Platform) -> None:
    few = dict(list(quiet.attributes.items())[:3])
    some = dict.fromkeys(quiet.attributes, "a") | dict.fromkeys(few, "b")
    found = pairs.analyse(quiet.frames, NOTHING, some)
    assert all(each.value is None and each.n is None for each in found.estimates)


def test_pairs_are_off_without_a_file(simulated: Store) -> None:
    with pytest.raises(attributes.NotEnabled, match="RAPPORT_SELF_DECLARED_ATTRIBUTES"):
        answer(simulated, "pairs", Asked())


def test_attributes_are_read_under_pseudonyms(tmp_path: Path) -> None:
    file = tmp_path / "declared.csv"
    file.write_text("speaker_id,attribute\nnoor, a \nolu,\n")
    assert attributes.read(file, str.upper) == {"NOOR": "a"}
    file.write_text("speaker_id,attribute\nnoor,ä\n", encoding="utf-8-sig")
    assert attributes.read(file, str.upper) == {"NOOR": "ä"}
    file.write_text("name,attribute\nnoor,a\n")
    with pytest.raises(attributes.AttributesError, match="speaker_id and attribute"):
        attributes.read(file, str.upper)
    with pytest.raises(attributes.AttributesError, match="cannot be read"):
        attributes.read(tmp_path / "none.csv", str.upper)


def test_drift_of_one_head_is_found_and_warned_about(eventful: Platform) -> None:
    found = drift.analyse(eventful.frames, NOTHING, at=training(eventful))
    strategy = of(found, drift.INDEX, "strategy")
    assert 0.1 < (strategy.value or 0) < 0.25
    assert any(line.startswith("strategy, all: population") for line in found.warnings)
    assert (of(found, drift.INDEX, "talk type").value or 0) < 0.02
    assert (of(found, drift.INDEX, "length, client").value or 0) < 0.02


def test_a_quiet_platform_gives_no_warning(quiet: Platform) -> None:
    found = drift.analyse(quiet.frames, NOTHING, at=training(quiet))
    assert found.warnings == []
    assert any("Reliability of emotional reactions" in curve.title for curve in found.curves)


def test_a_model_that_is_calibrated_worse_since_the_date_is_warned_about() -> None:
    platform = simulate(replace(QUIET, rated=0.3))
    at, frames = training(platform), platform.frames
    late = set(frames.sessions.loc[frames.sessions["started_at"] >= at, "session_id"])
    sure = frames.ratings.copy()
    sure.loc[sure["session_id"].isin(late), "probability"] = 0.99
    found = drift.analyse(replace(frames, ratings=sure), NOTHING, at=at)
    measure = "probability of emotional reactions, against ratings"
    assert (of(found, drift.RECALIBRATION, measure).high or 0) < 0
    assert any("change of observed minus predicted" in line for line in found.warnings)
    assert all(f"since {at:%Y-%m-%d}" in line for line in found.warnings)


def test_a_miscalibration_that_was_always_there_is_shown_and_not_called(quiet: Platform) -> None:
    sure = quiet.frames.ratings.assign(probability=0.99)
    found = drift.analyse(replace(quiet.frames, ratings=sure), NOTHING, at=training(quiet))
    measure = "probability of emotional reactions, against ratings"
    assert (of(found, drift.CALIBRATION, measure).high or 0) < 0
    assert of(found, drift.CALIBRATION, measure).p is None
    assert found.warnings == []


def test_a_model_change_is_called_while_it_is_new() -> None:
    world = World(seed=3, counsellors=60, joining_months=4, new_model=12, new_model_shift=0.4)
    frames = simulate(world).frames
    at = world.begins + timedelta(days=12 * DAYS_A_MONTH)
    soon = frames.of_sessions(
        frames.sessions["started_at"] < pd.Timestamp(at) + pd.Timedelta("25D")
    )
    assert any(drift.BREAK in line for line in drift.analyse(soon, NOTHING).warnings)
    assert not any(drift.BREAK in line for line in drift.analyse(frames, NOTHING).warnings)


def test_a_change_of_the_model_is_reported_as_a_break() -> None:
    world = World(seed=3, counsellors=60, joining_months=4, new_model=12, new_model_shift=0.2)
    found = drift.analyse(simulate(world).frames, NOTHING)
    jump = of(found, drift.BREAK, "empathy_index", "synthetic-1 to synthetic-2")
    assert holds(jump, 0.1)
    assert excludes(jump, 0.0)


def test_the_index_of_equal_shares_is_zero_and_of_others_the_formula() -> None:
    rows = pd.Series(["x", "y"] * 400 + ["x", "x", "x", "y"] * 200)
    current = np.repeat([False, True], 800)
    people = pd.Series(np.tile(np.arange(40), 40).astype(str))
    value, low, high, p = drift.stability(rows, current, people, seed=1)
    expected = 0.25 * math.log(0.75 / 0.5) - 0.25 * math.log(0.25 / 0.5)
    assert value == pytest.approx(expected, abs=0.03)
    assert low < expected < high
    assert p < 0.01
    same, *_ = drift.stability(rows.head(800), current[400:1200], people.head(800), seed=1)
    assert same == pytest.approx(0, abs=0.01)


def test_error_and_alert_rates_differ_by_channel_only(eventful: Platform) -> None:
    found = fairness.analyse(eventful.frames, NOTHING, eventful.attributes)
    errors = "errors of emotional reactions"
    assert holds(of(found, fairness.DIFFERENCE, errors, "channel chat"), -0.2)
    assert (of(found, fairness.DIFFERENCE, errors, "channel chat").p_adjusted or 1) < 0.01
    alerts = of(found, fairness.DIFFERENCE, "sessions with an alert", "channel chat")
    assert excludes(alerts, 0.0)
    for group in ("lang en-GB", "client attribute a"):
        assert (of(found, fairness.DIFFERENCE, errors, group).p_adjusted or 0) > 0.05


def test_a_small_subgroup_gets_no_figure_and_gives_no_other_one_away(eventful: Platform) -> None:
    sessions = eventful.frames.sessions.copy()
    sessions.loc[sessions.index[:8], "lang"] = "cy"
    found = fairness.analyse(replace(eventful.frames, sessions=sessions), NOTHING)
    rates = {
        each.group: each for each in found.estimates if each.measure == "sessions with an alert"
    }
    assert rates["lang cy"].problem == fairness.NOT_ENOUGH
    assert rates["lang cy"].n is None
    hidden = [name for name, each in rates.items() if each.problem and name.startswith("lang")]
    assert len(hidden) == 2


def test_holm_orders_p_values() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


def test_intervals_are_wider_with_clusters_than_without(eventful: Platform) -> None:
    sessions = eventful.frames.sessions
    none = pd.DataFrame(index=sessions.index)
    by_person = gee(sessions["empathy_index"], none, sessions["counsellor"]).terms["intercept"]
    by_session = gee(sessions["empathy_index"], none, sessions["session_id"]).terms["intercept"]
    assert by_person.value == pytest.approx(by_session.value)
    assert by_person.high - by_person.low > 2 * (by_session.high - by_session.low)


@pytest.mark.parametrize(
    ("family", "exact"), [("gaussian", 1e-9), ("poisson", 1e-5), ("binomial", 1e-5)]
)
def test_estimates_and_errors_are_those_of_statsmodels(family: str, exact: float) -> None:
    """Clusters of 1 to 40 rows, where the correction matters, with a covariate of each kind."""
    generator = np.random.default_rng(5)
    clusters = np.repeat(np.arange(12), [1, 2, 40, 5, 7, 3, 20, 4, 6, 9, 2, 11])
    generator.shuffle(clusters)
    design = pd.DataFrame({"own": clusters % 2.0, "varying": generator.normal(size=len(clusters))})
    mean = 0.3 * design["varying"] + 0.2 * clusters / 12
    y = {
        "gaussian": mean + generator.normal(size=len(clusters)),
        "poisson": generator.poisson(np.exp(mean)),
        "binomial": generator.random(len(clusters)) < 1 / (1 + np.exp(-mean)),
    }[family]
    order = np.argsort(clusters, kind="stable")
    theirs = GEE(
        np.asarray(y, dtype=float)[order],
        add_constant(design.to_numpy())[order],
        clusters[order],
        family=FAMILIES[family](),
        cov_struct=Independence(),
    ).fit(cov_type="bias_reduced")
    ours = gee(y, design, clusters, family).terms.values()
    assert [each.value for each in ours] == pytest.approx(list(theirs.params), rel=exact)
    assert [each.error for each in ours] == pytest.approx(list(theirs.bse), rel=exact)


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != "pairs"])
def test_every_question_is_answered_from_a_database(simulated: Store, name: str) -> None:
    found = answer(simulated, name, Asked(fewest_days=100), lambda known: [f"κ of {known[0]}"])
    assert found.question == name
    assert found.agreement == ["κ of synthetic-1"]
    assert found.bundles == ["synthetic-1", "synthetic-2"]
    assert found.sessions
    assert found.estimates
    for each in found.estimates:
        assert (each.value is None) == (each.problem is not None), each
        if each.value is not None:
            assert each.low is not None
            assert each.high is not None
            assert each.low <= each.high
            assert each.n
            assert each.counsellors
            assert each.bundle
    words = " ".join([found.title, found.about, *found.notes])
    assert "rank " not in words
    assert "leaderboard" not in words


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != "pairs"])
def test_an_empty_database_is_answered_without_figures(simulated: Store, name: str) -> None:
    found = answer(simulated, name, Asked(since=datetime(2090, 1, 1, tzinfo=UTC)))
    assert found.sessions in (0, None)
    assert all(each.value is None for each in found.estimates)
