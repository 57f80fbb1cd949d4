"""What a bundle that is no longer in force leaves behind is closed with its sessions."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from stream_app.contracts.scores import Alert
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.rules.alert_reasons import BUNDLE_GONE
from stream_app.core.session.environment import Policy
from stream_app.core.session.ports import Message
from stream_app.store.database import tables
from stream_app.store.stream import left_states
from stream_app.store.stream.repository import Store
from tests.fakes import FakeScorer
from tests.store.batches import end, pipeline, prepare, received, turn
from tests.store.reading import rows

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


class TriedScorer(FakeScorer):
    bundle_id = "tried-1-fp32"


def tried_pipeline() -> Pipeline:
    return Pipeline(TriedScorer(), Policy(WindowPolicy(), pipeline().environment.policy.rules))


def tried_and_rolled_back(store: Store) -> None:
    """Session "ended" ends after the roll-back, "silent" gets no further event."""
    prepare(store)
    store.prepare(TriedScorer.bundle_id, "1" * 64, {"name": "tried"}, True)
    names = ("ended", "silent")
    store.commit(tried_pipeline().process(received([turn(0, session_id=n) for n in names]), {}))
    more = [turn(1, session_id="ended"), end(session_id="ended")]
    store.commit(pipeline().process(received(more), {}))


def statuses(store: Store, name: str) -> list[str]:
    found = rows(store, tables.session_states) + rows(store, tables.session_scores)
    wanted = name, TriedScorer.bundle_id
    return [row["status"] for row in found if (row["session_id"], row["bundle"]) == wanted]


def stages(store: Store, name: str) -> list[tuple[int, str]]:
    return sorted(
        (row["seq"], row["stage"])
        for row in rows(store, tables.turn_scores)
        if (row["session_id"], row["bundle"]) == (name, TriedScorer.bundle_id)
    )


def told(alerts: Sequence[Alert]) -> list[Message]:
    return [Message("alerts", each.session_id.encode(), each.rule.encode()) for each in alerts]


def alerts_of(store: Store, name: str) -> dict[str, list[str]]:
    """The states of a session's alerts under the tried bundle, by rule."""
    found: dict[str, list[str]] = {}
    for row in sorted(rows(store, tables.alerts), key=lambda row: row["occurred_at"]):
        if (row["session_id"], row["bundle"]) == (name, TriedScorer.bundle_id):
            found.setdefault(row["rule"], []).append(row["state"])
    return {rule: sorted(states) for rule, states in found.items()}


def close(store: Store, before: datetime, partitions: tuple[int, ...] = (0,)) -> int:
    closed = left_states.close(store, [pipeline().bundle_id], before, partitions, told)
    return len(closed.session_ids) if closed is not None else 0


def test_an_end_closes_the_states_of_other_bundles(store: Store) -> None:
    tried_and_rolled_back(store)
    assert left_states.count(store, [pipeline().bundle_id]) == {TriedScorer.bundle_id: 1}
    assert stages(store, "ended") == [(0, "provisional")]
    assert close(store, LONG_AGO, partitions=(1,)) == 0, "those of another worker"
    assert close(store, LONG_AGO) == 1
    assert statuses(store, "ended") == ["closed", "closed"]
    assert stages(store, "ended") == [(0, "final"), (0, "provisional")]
    assert statuses(store, "silent") == ["open", "open"]
    assert left_states.count(store, [pipeline().bundle_id]) == {}
    assert close(store, LONG_AGO) == 0


def test_the_idle_timeout_ends_the_states_of_other_bundles(store: Store) -> None:
    tried_and_rolled_back(store)
    assert close(store, datetime.now(UTC) + timedelta(minutes=20)) == 2
    assert statuses(store, "silent") == ["idle", "idle"]
    assert stages(store, "silent") == [(0, "final"), (0, "provisional")]
    assert close(store, datetime.now(UTC) + timedelta(minutes=20)) == 0


def test_final_scores_stay_and_the_bundle_can_go_on(store: Store) -> None:
    tried_and_rolled_back(store)
    close(store, datetime.now(UTC) + timedelta(minutes=20))
    states = store.load_states(["silent"], TriedScorer.bundle_id)
    more = [turn(seq, session_id="silent") for seq in range(1, 6)]
    store.commit(tried_pipeline().process(received(more), states))
    assert statuses(store, "silent") == ["open", "open"]
    before = [row for row in rows(store, tables.turn_scores) if row["stage"] == "final"]
    close(store, datetime.now(UTC) + timedelta(minutes=20))
    after = [row for row in rows(store, tables.turn_scores) if row["stage"] == "final"]
    assert all(row in after for row in before)
    assert {seq for seq, stage in stages(store, "silent") if stage == "final"} == set(range(6))


FIRED = ["firing", "pending"]
ENDED = ["firing", "pending", "resolved"]


def fired_and_rolled_back(store: Store) -> dict[str, list[str]]:
    """An alert fires in each session under the tried bundle; then as ``tried_and_rolled_back``."""
    prepare(store)
    store.prepare(TriedScorer.bundle_id, "1" * 64, {"name": "tried"}, True)
    log = [turn(seq, session_id=name) for name in ("ended", "silent") for seq in range(6)]
    store.commit(tried_pipeline().process(received(log), {}))
    more = [turn(6, session_id="ended"), end(session_id="ended")]
    store.commit(pipeline().process(received(more), {}))
    fired = alerts_of(store, "ended")
    assert FIRED in fired.values()
    assert fired == alerts_of(store, "silent")
    return fired


def all_over(fired: dict[str, list[str]]) -> dict[str, list[str]]:
    return {rule: ENDED if states == FIRED else states for rule, states in fired.items()}


def test_alerts_end_with_the_states(store: Store) -> None:
    fired = fired_and_rolled_back(store)
    assert close(store, LONG_AGO) == 1
    assert alerts_of(store, "ended") == all_over(fired)
    assert alerts_of(store, "silent") == fired
    assert close(store, datetime.now(UTC) + timedelta(minutes=20)) == 1
    assert alerts_of(store, "silent") == all_over(fired)
    last = [row for row in rows(store, tables.alerts) if row["reason"] == BUNDLE_GONE]
    assert {row["previous"] for row in last} <= {"firing", "pending"}
    assert {row["seq"] for row in last} == {None}
    entries = store.outbox_entries(store.outbox_ids())
    assert sum(len(entry.messages) for entry in entries) == len(last)


def test_alerts_begin_again_when_their_bundle_returns(store: Store) -> None:
    fired_and_rolled_back(store)
    close(store, datetime.now(UTC) + timedelta(minutes=20))
    states = store.load_states(["silent"], TriedScorer.bundle_id)
    store.commit(
        tried_pipeline().process(
            received([turn(seq, session_id="silent") for seq in range(6, 20)]), states
        )
    )
    found = [row for row in rows(store, tables.alerts) if row["session_id"] == "silent"]
    assert {row["episode"] for row in found if row["state"] == "firing"} == {1, 2}


def sweep(store: Store, partitions: tuple[int, ...] = (0,)) -> list[str]:
    found = left_states.sweep(store, [pipeline().bundle_id], partitions, told)
    return found.session_ids if found is not None else []


def test_a_sweep_ends_what_no_open_state_continues(store: Store) -> None:
    fired = fired_and_rolled_back(store)
    assert sweep(store) == [], "a worker with the bundle may continue them"
    with store.transaction() as connection:
        connection.execute(tables.session_states.update().values(status="idle"))
    assert left_states.count(store, [pipeline().bundle_id]) == {TriedScorer.bundle_id: 2}
    assert sweep(store, partitions=(1,)) == []
    assert sweep(store) == ["ended", "silent"]
    assert left_states.count(store, [pipeline().bundle_id]) == {}
    assert alerts_of(store, "silent") == all_over(fired)
    assert statuses(store, "silent") == ["idle", "idle"]
    assert sweep(store) == []


def test_a_sweep_needs_no_states(store: Store) -> None:
    fired = fired_and_rolled_back(store)
    with store.transaction() as connection:
        connection.execute(tables.session_states.delete())
    assert sweep(store) == ["ended", "silent"]
    assert alerts_of(store, "ended") == all_over(fired)
    assert sweep(store) == []


@pytest.mark.parametrize("hidden", [False, True])
def test_consumers_do_not_hear_of_hidden_sessions(store: Store, hidden: bool) -> None:
    fired_and_rolled_back(store)
    with store.transaction() as connection:
        connection.execute(tables.sessions.update().values(hidden=hidden))
    close(store, datetime.now(UTC) + timedelta(minutes=20))
    assert bool(store.outbox_ids()) is not hidden
