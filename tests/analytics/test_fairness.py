"""Rates by subgroup where little happened, and groups that must not be given away."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from stream_app.analytics.questions import fairness
from stream_app.analytics.questions.fairness import DIFFERENCE, NOT_ENOUGH, RATE
from stream_app.analytics.questions.frames import Frames
from stream_app.analytics.questions.result import Context, Estimate
from stream_app.demo.simulator import World, simulate

ALERTS = "sessions with an alert"


@cache
def platform() -> Frames:
    """A thousand sessions with a turn each; their channels and alerts are drawn apart."""
    return simulate(World(counsellors=20, joining_months=1, turns=1)).frames


def frames(sessions: int, chance: tuple[float, float], seed: int = 1) -> Frames:
    """Half of the sessions by chat and half by phone, with an alert as likely as said."""
    draw = np.random.default_rng(seed)
    drawn = platform()
    some = drawn.sessions.head(sessions).copy()
    phone = np.arange(sessions) % 2 == 1
    some["channel"] = np.where(phone, "phone", "chat")
    some["counsellor"] = [f"counsellor-{number // 2 % 20}" for number in range(sessions)]
    some["client"] = [f"client-{number}" for number in range(sessions)]
    alerted = draw.random(sessions) < np.where(phone, chance[1], chance[0])
    alerts = pd.DataFrame(
        {
            "episode_id": some.loc[alerted, "session_id"],
            "rule": "low-empathy",
            "severity": "warning",
            "session_id": some.loc[alerted, "session_id"],
            "bundle": some.loc[alerted, "bundle"],
            "fired_at": some.loc[alerted, "started_at"],
            "acknowledged_at": pd.Series(
                pd.NaT, index=some.index[alerted], dtype="datetime64[ns, UTC]"
            ),
            "verdict": "",
        }
    )
    kept = drawn.of_sessions(drawn.sessions["session_id"].isin(set(some["session_id"])))
    return replace(kept, sessions=some, alerts=alerts, ratings=kept.ratings.iloc[:0])


def of(found: list[Estimate], name: str, group: str) -> Estimate:
    [one] = [each for each in found if (each.name, each.group) == (name, group)]
    return one


def rates(data: Frames) -> list[Estimate]:
    found = fairness.analyse(data, Context()).estimates
    return [each for each in found if each.measure == ALERTS]


def test_zero_events_have_an_interval() -> None:
    found = rates(frames(80, (0.0, 0.0)))
    rate = of(found, RATE, "channel phone")
    assert rate.value == 0
    assert rate.low == 0
    assert 0.05 < (rate.high or 0) < 0.15
    difference = of(found, DIFFERENCE, "channel chat")
    assert difference.p == 1
    assert (difference.low or 0) < 0 < (difference.high or 0)


def test_few_sessions_find_nothing_where_nothing_is() -> None:
    """40 sessions each; 2 of 40 draws by chance, and one more."""
    found = [
        of(rates(frames(80, (0.06, 0.06), seed)), DIFFERENCE, "channel chat").p
        for seed in range(1, 41)
    ]
    assert sum((p or 0) < 0.05 for p in found) <= 3


def test_a_large_difference_of_few_sessions_is_found() -> None:
    assert (of(rates(frames(80, (0.0, 0.4))), DIFFERENCE, "channel chat").p or 1) < 0.001


def test_a_group_of_few_rows_is_not_published_as_its_complement() -> None:
    data = frames(120, (0.2, 0.2))
    data.sessions["channel"] = np.where(np.arange(120) < 20, "video", "chat")
    found = rates(data)
    assert {each.problem for each in found if each.group.startswith("channel")} == {NOT_ENOUGH}
    assert not [each for each in found if each.name == DIFFERENCE and "channel" in each.group]


def test_a_certain_but_small_difference_is_called_small() -> None:
    found = fairness.analyse(frames(1000, (0.0, 0.0)), Context())
    assert not any("certain but small" in note for note in found.notes)
    certain = Estimate(
        DIFFERENCE, ALERTS, "x", "share", 0.02, 0.01, 0.03, 9, 9, "", p=0.001, p_adjusted=0.002
    )
    assert fairness.is_small(certain)
    assert not fairness.is_small(replace(certain, high=0.06))
    assert not fairness.is_small(replace(certain, p_adjusted=0.2))
