"""Worker processes with a bundle in the shadow."""

import asyncio
import os
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from stream_app.inference.bundles.bundle import SHIPPED, load
from stream_app.processes.child_processes import PREFIX, environment, running_process
from stream_app.recordings import event_files, replay
from stream_app.store.database import tables
from tests.e2e.service import Service

KEY = ("session_id", "seq", "stage")


def keys(found: list[Any]) -> set[tuple[Any, ...]]:
    return {tuple(row[name] for name in KEY) for row in found}


def test_a_worker_stores_the_scores_of_another_bundle_in_the_shadow(tmp_path: Path) -> None:
    """The nano bundle has another encoder, so every turn is encoded a second time."""
    nano = load(SHIPPED / "nano").manifest.bundle_id
    in_force, tried = tables.turn_scores, tables.shadow_scores
    command = [sys.executable, "-m", "stream_app.cli", "worker", "--shadow", "nano"]
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(PREFIX)}
    samples = event_files.sample_sessions()
    events = replay.recently_ended_samples(samples[:1], "sample")
    with (
        closing(Service(tmp_path)) as running,
        running_process(
            command, tmp_path / "worker.log", {**inherited, **environment(running.settings)}
        ),
    ):
        asyncio.run(replay.send(running.settings, events, speed=0.0))
        turns = sum(b'"type":"turn"' in event.value.replace(b": ", b":") for event in events)
        running.wait_for(lambda: running.count(in_force) >= 2 * turns, "all turns are scored")
        running.wait_for(
            lambda: keys(running.rows(tried)) == keys(running.rows(in_force)),
            "all turns are scored in the shadow",
        )
        assert {row["bundle"] for row in running.rows(tried)} == {nano}
        assert [row["bundle"] for row in running.rows(tables.shadow_bundles)] == [nano]
        assert nano not in {row["bundle"] for row in running.rows(tables.session_scores)}
        own = load(running.settings.bundle).manifest.bundle_id
        assert {row["bundle"] for row in running.rows(tables.bundles)} == {own}
