"""What a bundle that is no longer in force leaves behind is closed with its sessions."""

from datetime import UTC, datetime, timedelta

from stream_app.core.environment import Policy
from stream_app.core.pipeline import Pipeline
from stream_app.core.window import WindowPolicy
from stream_app.store import left_states, tables
from stream_app.store.repository import Store
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


def close(store: Store, before: datetime, partitions: tuple[int, ...] = (0,)) -> int:
    return left_states.close(store, pipeline().bundle_id, before, partitions)


def test_an_end_closes_the_states_of_other_bundles(store: Store) -> None:
    tried_and_rolled_back(store)
    assert left_states.count(store, pipeline().bundle_id) == {TriedScorer.bundle_id: 1}
    assert stages(store, "ended") == [(0, "provisional")]
    assert close(store, LONG_AGO, partitions=(1,)) == 0, "those of another worker"
    assert close(store, LONG_AGO) == 1
    assert statuses(store, "ended") == ["closed", "closed"]
    assert stages(store, "ended") == [(0, "final"), (0, "provisional")]
    assert statuses(store, "silent") == ["open", "open"]
    assert left_states.count(store, pipeline().bundle_id) == {}
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
