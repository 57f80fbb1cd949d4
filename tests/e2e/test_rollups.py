"""A running worker keeps the roll-ups up to date: after a session's end, and after its erasure."""

import os
import sys
from datetime import UTC, datetime
from typing import Any

from stream_app.analytics.rollups import rollups
from stream_app.processes.child_processes import environment, running_process
from stream_app.store.database import tables
from stream_app.store.lifecycle import erasure
from tests.conftest import NewService
from tests.e2e.service import Service
from tests.store.batches import end, turn

ROLLED = (
    tables.rollup_sessions,
    tables.rollup_counsellors,
    tables.rollup_cells,
    tables.rollup_means,
)


def test_a_running_worker_rolls_up_ended_and_erased_sessions(new_service: NewService) -> None:
    service = new_service()
    with running_process(
        [sys.executable, "-m", "tests.e2e.eager_worker"],
        service.folder / "worker.log",
        {**os.environ, **environment(service.settings)},
    ):
        service.send([*session("a"), *session("b"), turn(0, session_id="open")])
        service.wait_for(lambda: rolled_up(service) == {"a", "b"}, "both ended sessions")
        updated = contents(service)
        assert updated[2], "cells"
        erasure.erase(service.store, ["a"], datetime.now(UTC))
        service.wait_for(lambda: counts(service) == {1}, "the erased session left the sums")
        updated = contents(service)
    rollups.rebuild(service.store)
    assert contents(service) == updated


def session(name: str) -> list[bytes]:
    return [*(turn(seq, session_id=name) for seq in range(4)), end(session_id=name)]


def rolled_up(service: Service) -> set[str]:
    """Sessions in the roll-ups, once everything was applied."""
    if service.count(tables.rollup_marks):
        return set()
    return {row["session_id"] for row in service.rows(tables.rollup_sessions)}


def counts(service: Service) -> set[int]:
    return {row["sessions"] for row in service.rows(tables.rollup_cells)}


def contents(service: Service) -> list[list[dict[str, Any]]]:
    return [sorted((dict(row) for row in service.rows(table)), key=repr) for table in ROLLED]
