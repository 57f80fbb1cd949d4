"""An archive run that is killed at any step loses no fact and doubles none."""

import subprocess
import sys
from pathlib import Path

import pytest

from stream_app.analytics.archive import archive
from stream_app.store.stream.repository import open_store
from tests.analytics.archiving import SESSIONS, facts, fill, move
from tests.analytics.killed_runs import DATABASE
from tests.store import databases
from tests.store.batches import prepare


@pytest.mark.slow
def test_a_run_killed_at_any_step_loses_and_doubles_nothing(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    store = prepare(open_store(databases.sqlite(source / DATABASE)))
    fill(store)
    before = facts(store, None)
    store.close()
    command = [sys.executable, "-m", "tests.analytics.killed_runs", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    copies = sorted((path for path in tmp_path.iterdir() if path.name.isdigit()), key=step_of)
    assert len(copies) > 2 * 4 * 4, "two months, four facts: written, synced, renamed, synced"
    for copy in copies:
        survives(copy, before)


def step_of(copy: Path) -> int:
    return int(copy.name)


def survives(copy: Path, before: dict[str, list[dict[str, object]]]) -> None:
    store = open_store(f"sqlite:///{copy / DATABASE}")
    folder = copy / "archive"
    try:
        if not folder.exists():
            folder.mkdir()
        assert facts(store, folder) == before, f"killed before step {copy.name}"
        move(store, folder)
        assert facts(store, folder) == before, f"run again after step {copy.name}"
        assert not list(folder.rglob(archive.TEMPORARY))
        assert len(before["fact_session"]) == SESSIONS
    finally:
        store.close()
