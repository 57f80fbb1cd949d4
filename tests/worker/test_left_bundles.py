"""What a removed or rolled-back bundle has left ends, is stored, and is published."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stream_app.contracts import scores
from stream_app.contracts.scores import Alert
from stream_app.core.pipeline.scoring_bundles import BundlesInForce
from stream_app.store.database import tables
from stream_app.store.stream import left_states
from stream_app.store.stream.repository import Store
from stream_app.worker.batches.commits import Committed
from stream_app.worker.batches.metrics import WorkerMetrics
from stream_app.worker.batches.processor import BatchProcessor, BatchSettings
from stream_app.worker.upkeep.left_bundles import SWEEP_EVERY, LeftBundles
from tests.routed_fakes import bundle_of, in_force, pipeline_of
from tests.store.batches import end, turn
from tests.store.reading import rows
from tests.worker.processors import TOPICS, handle

ROUTES = "routes:\n  - {bundle: north, teams: [north]}\n"
NORTH, DEFAULT = "north-1-fp32", "default-1-fp32"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
LATER = timedelta(hours=2)


@pytest.fixture
def store(open_prepared: Callable[[str], Store]) -> Store:
    return open_prepared("one")


class Worker:
    """A processor with a routed bundle, which ``remove`` takes from the routes."""

    def __init__(self, store: Store) -> None:
        for name in (DEFAULT, NORTH):
            store.prepare(name, "0" * 64, {"name": name}, True)
        self.now = 0.0
        self.store = store
        self.pipeline = pipeline_of(in_force({"north": bundle_of("north")}, ROUTES))
        self.processor = BatchProcessor(
            self.pipeline, store, BatchSettings(TOPICS, 30.0, 100), WorkerMetrics()
        )
        self.left = LeftBundles(store, self.pipeline, self.processor, lambda: self.now)

    def adopt(self, bundles: BundlesInForce) -> None:
        self.pipeline.adopt(bundles)

    def remove(self) -> None:
        self.adopt(in_force({}, ROUTES))

    def begin(self, *names: str) -> None:
        log = [turn(seq, session_id=name, team="north") for name in names for seq in range(6)]
        handle(self.processor, log)

    def close(self) -> list[Alert]:
        found: list[Alert] = []
        while (some := self.left.close(LONG_AGO, [0])) is not None:
            found += published(some)
        return found

    def firing(self) -> set[str]:
        """Sessions with an alert of the removed bundle that nothing has ended."""
        found = [row for row in rows(self.store, tables.alerts) if row["bundle"] == NORTH]
        over = {row["episode_id"] for row in found if row["state"] in ("resolved", "inactive")}
        return {row["session_id"] for row in found if row["episode_id"] not in over}

    def unfinished(self) -> list[tuple[str, int]]:
        found = [row for row in rows(self.store, tables.turn_scores) if row["bundle"] == NORTH]
        final = {(row["session_id"], row["seq"]) for row in found if row["stage"] == "final"}
        return sorted({(row["session_id"], row["seq"]) for row in found} - final)

    def statuses(self, name: str) -> dict[str, str]:
        found = rows(self.store, tables.session_scores)
        return {row["bundle"]: row["status"] for row in found if row["session_id"] == name}

    def left_behind(self) -> dict[str, int]:
        in_force = [each.environment.bundle_id for each in self.pipeline.bundles]
        return left_states.count(self.store, in_force)


def published(some: Committed) -> list[Alert]:
    assert (some.outbox_id is None) == (not some.messages)
    assert [message.topic for message in some.messages] == ["alerts"] * len(some.messages)
    decoded: list[Any] = [scores.decode(message.value or b"") for message in some.messages]
    return decoded


def test_a_session_that_goes_on_leaves_nothing_open(store: Store) -> None:
    worker = Worker(store)
    worker.begin("s")
    assert worker.firing() == {"s"}
    assert worker.unfinished()
    worker.remove()
    handle(worker.processor, [turn(6, session_id="s")])
    assert worker.firing() == set()
    assert worker.unfinished() == []
    assert worker.statuses("s") == {NORTH: "idle", DEFAULT: "open"}
    handle(worker.processor, [end(session_id="s")])
    assert worker.statuses("s") == {NORTH: "closed", DEFAULT: "closed"}
    assert worker.left_behind() == {}


def test_the_idle_timeout_ends_alerts_of_a_removed_bundle(store: Store) -> None:
    worker = Worker(store)
    worker.begin("s")
    worker.remove()
    flushed = worker.processor.due.flush_idle(datetime.now(UTC) + LATER, [0])
    assert flushed is not None
    assert {alert.bundle for alert in flushed.result.alerts} == {NORTH}
    assert worker.firing() == set()
    assert worker.unfinished() == []
    assert worker.statuses("s") == {NORTH: "idle"}
    assert worker.left_behind() == {}


def test_what_was_idle_before_its_bundle_was_removed_ends(store: Store) -> None:
    worker = Worker(store)
    worker.begin("s", "t")
    worker.processor.due.flush_idle(datetime.now(UTC) + LATER, [0])
    assert worker.close() == []
    assert worker.firing() == {"s", "t"}, "in force: they may go on"
    worker.remove()
    assert worker.left_behind() == {NORTH: 2}
    ended = worker.close()
    assert {(alert.session_id, alert.bundle) for alert in ended} == {("s", NORTH), ("t", NORTH)}
    assert worker.firing() == set()
    assert worker.left_behind() == {}
    handle(worker.processor, [turn(6, session_id="s"), end(session_id="s")])
    assert worker.statuses("s") == {NORTH: "closed", DEFAULT: "closed"}


def test_alerts_fire_again_if_the_bundle_returns(store: Store) -> None:
    worker = Worker(store)
    worker.begin("s")
    worker.processor.due.flush_idle(datetime.now(UTC) + LATER, [0])
    before = worker.pipeline.bundles
    worker.remove()
    worker.close()
    worker.adopt(before)
    handle(worker.processor, [turn(seq, session_id="s") for seq in range(6, 16)])
    firing = [row for row in rows(store, tables.alerts) if row["state"] == "firing"]
    assert {row["episode"] for row in firing if row["bundle"] == NORTH} == {1, 2}


def test_all_alerts_are_read_seldom(store: Store) -> None:
    worker = Worker(store)
    worker.begin("s")
    worker.processor.due.flush_idle(datetime.now(UTC) + LATER, [0])
    worker.remove()
    worker.close()
    with store.transaction() as connection:
        connection.execute(tables.alerts.delete().where(tables.alerts.c.state == "resolved"))
    assert worker.close() == []
    worker.now += SWEEP_EVERY
    assert worker.close() != []
