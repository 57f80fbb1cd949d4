"""Drift calls once: a change is recorded with its day, and is the baseline once acknowledged."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pytest

from stream_app.analytics.questions import drift, drift_watch
from stream_app.analytics.questions.drift import ALL, INDEX, Subject
from stream_app.analytics.questions.frames import DAYS_A_MONTH
from stream_app.analytics.questions.result import Context
from stream_app.demo import simulated_store
from stream_app.demo.simulator import Platform, World, simulate
from stream_app.store.alerts import drift_changes
from stream_app.store.alerts.drift_changes import FoundChange
from stream_app.store.sessions.scored_turns import NotFound, StateConflict
from stream_app.store.stream.repository import Store, open_store
from tests.store import databases

SHIFT = World(
    counsellors=24,
    months=8.0,
    joining_months=1.0,
    sessions_a_month=2.0,
    turns=3,
    drift=7.25,
    drift_share=0.5,
)
END = SHIFT.begins + timedelta(days=SHIFT.months * DAYS_A_MONTH)
BEGAN = SHIFT.begins + timedelta(days=7.25 * DAYS_A_MONTH)
STRATEGY = Subject(INDEX, "strategy", ALL)


@pytest.fixture(scope="module")
def shifted() -> Platform:
    return simulate(SHIFT)


@pytest.fixture
def watched(shifted: Platform, tmp_path: Path) -> Iterator[Store]:
    store = open_store(databases.sqlite(tmp_path / "rapport.db"))
    store.load_privacy(redact=False)
    simulated_store.write(shifted, store)
    yield store
    store.close()


def test_a_change_has_the_day_since_when(shifted: Platform) -> None:
    [change] = drift.shifts_of(shifted.frames, None, {}).changes
    assert change.subject == STRATEGY
    assert abs(change.since - pd.Timestamp(BEGAN)) <= pd.Timedelta(days=10)


def test_an_acknowledged_change_is_the_baseline_of_its_measure_alone(shifted: Platform) -> None:
    known = {STRATEGY: BEGAN}
    assert drift.shifts_of(shifted.frames, None, known).changes == []
    other = {Subject(INDEX, "language", ALL): BEGAN}
    assert len(drift.shifts_of(shifted.frames, None, other).changes) == 1
    told = drift.analyse(shifted.frames, Context(), known=known)
    assert told.warnings == []
    assert any("acknowledged" in note for note in told.notes)


def test_a_second_change_after_an_acknowledged_one_is_called() -> None:
    """The first was acknowledged two months ago; then the questions became rare again."""
    frames = simulate(replace(SHIFT, drift=4.0)).frames
    first = SHIFT.begins + timedelta(days=4.0 * DAYS_A_MONTH)
    known = {STRATEGY: first}
    assert drift.shifts_of(frames, None, known).changes == []
    late = frames.turns["occurred_at"] >= pd.Timestamp(END - timedelta(days=25))
    column = "head.strategy"
    questions = frames.turns[column] == "question"
    turned = frames.turns[column].mask(late & questions, "others")
    again = replace(frames, turns=frames.turns.assign(**{column: turned}))
    [change] = drift.shifts_of(again, None, known).changes
    assert change.subject == STRATEGY


def test_a_check_reports_once_until_acknowledged_and_then_not_again(watched: Store) -> None:
    [change] = drift_watch.check(watched, END)
    assert drift_watch.check(watched, END + timedelta(days=1)) == []
    assert drift_changes.waiting(watched) == 1
    done = drift_changes.acknowledge(watched, change.change_id, "ann")
    assert (done.person, done.since) == ("ann", change.since)
    assert drift_watch.check(watched, END + timedelta(days=2)) == []
    assert drift_changes.waiting(watched) == 0
    assert drift_changes.all_of(watched, unacknowledged=True) == []
    with pytest.raises(StateConflict):
        drift_changes.acknowledge(watched, change.change_id, "ben")
    with pytest.raises(NotFound):
        drift_changes.acknowledge(watched, "nothing", "ben")


def test_nothing_is_found_where_there_is_nothing(store: Store) -> None:
    assert drift_watch.check(store, END) == []


def test_the_same_figure_is_recorded_again_after_its_acknowledgement(store: Store) -> None:
    found = FoundChange(*STRATEGY, since=BEGAN, value=0.1)
    [one] = drift_changes.record(store, [found])
    assert drift_changes.record(store, [found]) == []
    drift_changes.acknowledge(store, one.change_id, "ann")
    later = replace(found, since=END)
    assert len(drift_changes.record(store, [later])) == 1
    drift_changes.acknowledge(store, drift_changes.all_of(store)[0].change_id, "ann")
    assert drift_watch.acknowledged(store) == {STRATEGY: END}
