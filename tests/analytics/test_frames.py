"""What is read from a database equals what the simulator drew."""

from dataclasses import replace
from datetime import timedelta

import pandas as pd
import pytest

from stream_app.analytics.questions import frames, head_labels
from stream_app.analytics.questions.frames import Frames
from stream_app.demo.simulator import Platform, simulate
from stream_app.store.sessions.scope import Scope
from stream_app.store.stream.repository import Store


@pytest.fixture(scope="module")
def found(simulated: Store) -> Frames:
    return frames.read(simulated, with_heads=True)


def drawn(platform: Platform, store: Store, name: str) -> pd.DataFrame:
    """As the database has it: ids with their prefix, speakers under pseudonyms."""
    frame = getattr(platform.frames, name).copy()
    frame["session_id"] = "simulated-" + frame["session_id"]
    for role in ("counsellor", "client"):
        if role in frame:
            frame[role] = frame[role].map(store.privacy.pseudonym)
    return frame


def assert_same(found: pd.DataFrame, expected: pd.DataFrame, keys: list[str]) -> None:
    assert set(found.columns) == set(expected.columns)
    one, other = (
        each[sorted(each.columns)].sort_values(keys, ignore_index=True)
        for each in (found, expected)
    )
    pd.testing.assert_frame_equal(one, other, check_dtype=False, atol=1e-6)


def test_sessions(found: Frames, platform: Platform, simulated: Store) -> None:
    assert_same(found.sessions, drawn(platform, simulated, "sessions"), ["session_id"])


def test_turns(found: Frames, platform: Platform, simulated: Store) -> None:
    assert_same(found.turns, drawn(platform, simulated, "turns"), ["session_id", "seq"])


def test_alerts(found: Frames, platform: Platform, simulated: Store) -> None:
    some, expected = (
        each.drop(columns="episode_id")
        for each in (found.alerts, drawn(platform, simulated, "alerts"))
    )
    assert_same(some, expected, ["session_id"])
    assert found.alerts["episode_id"].is_unique


def test_outcomes(found: Frames, platform: Platform, simulated: Store) -> None:
    keys = ["session_id", "seq", "kind"]
    assert_same(found.outcomes, drawn(platform, simulated, "outcomes"), keys)


def test_ratings(found: Frames, platform: Platform, simulated: Store) -> None:
    assert_same(found.ratings, drawn(platform, simulated, "ratings"), ["session_id", "seq"])


def test_columns_are_documented(found: Frames) -> None:
    documented = {
        "sessions": frames.SESSION_COLUMNS,
        "turns": frames.TURN_COLUMNS,
        "alerts": frames.ALERT_COLUMNS,
        "outcomes": frames.OUTCOME_COLUMNS,
        "ratings": frames.RATING_COLUMNS,
    }
    for name, columns in documented.items():
        got = [
            column
            for column in getattr(found, name).columns
            if not column.startswith((head_labels.HEAD, head_labels.PERCEIVED, frames.RISK))
        ]
        assert set(got) == set(columns), name


def test_dates_and_team_choose_sessions_but_not_when_somebody_joined(
    found: Frames, simulated: Store
) -> None:
    everything = found.sessions.set_index("session_id")
    since = everything["started_at"].min() + timedelta(days=200)
    until = since + timedelta(days=100)
    part = frames.read(simulated, Scope(team="north"), since.to_pydatetime(), until.to_pydatetime())
    some = part.sessions.set_index("session_id")
    expected = everything[
        (everything["team"] == "north")
        & (everything["started_at"] >= since)
        & (everything["started_at"] < until)
    ]
    assert set(some.index) == set(expected.index)
    assert (some["joined_at"] == expected["joined_at"].reindex(some.index)).all()
    for name in ("turns", "alerts", "outcomes", "ratings"):
        assert set(getattr(part, name)["session_id"]) <= set(some.index)


def test_an_empty_database_gives_empty_frames(simulated: Store) -> None:
    part = frames.read(simulated, Scope(team="nowhere"), with_heads=True)
    for name in ("sessions", "turns", "alerts", "outcomes", "ratings"):
        assert getattr(part, name).empty


def test_the_same_world_gives_the_same_platform(platform: Platform) -> None:
    again = simulate(platform.world)
    pd.testing.assert_frame_equal(again.frames.turns, platform.frames.turns)
    other = simulate(replace(platform.world, seed=2))
    assert not other.frames.turns.equals(platform.frames.turns)
