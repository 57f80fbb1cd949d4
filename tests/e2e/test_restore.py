"""A database older than the group's offsets: the missing part of the log is read again."""

import shutil

import pytest

from stream_app.processes.doctor import run_checks
from stream_app.store.database import tables
from tests.conftest import NewService
from tests.e2e.service import Service, differences, scored_offline, stored
from tests.store.batches import turn


def log_of(first: int, last: int) -> list[bytes]:
    return [turn(seq, session_id=name) for seq in range(first, last) for name in "abc"]


def findings(service: Service) -> dict[str, tuple[bool, str]]:
    return {found.name: (found.healthy, found.detail) for found in run_checks(service.settings)}


def test_a_restored_older_database_catches_up_from_the_log(new_service: NewService) -> None:
    service = new_service(idle_timeout=1.0)
    if "sqlite" not in service.settings.database_url.get_secret_value():
        pytest.skip("restores a file")
    worker = service.start_worker()
    service.send(log_of(0, 5))
    service.wait_for(lambda: service.count(tables.turns) == 15, "the first turns are stored")
    worker.terminate()
    worker.wait()
    service.store.close()
    file, backup = service.folder / "rapport.db", service.folder / "backup.db"
    shutil.copy(file, backup)
    worker = service.start_worker()
    service.send(log_of(5, 9))
    service.wait_for(lambda: service.count(tables.turns) == 27, "all turns are stored")
    worker.terminate()
    worker.wait()
    assert findings(service)["log"][0]
    service.store.close()
    for name in ("rapport.db-wal", "rapport.db-shm"):
        (service.folder / name).unlink(missing_ok=True)
    shutil.copy(backup, file)
    assert service.count(tables.turns) == 15
    healthy, detail = findings(service)["log"]
    assert not healthy
    assert "12 events" in detail
    service.start_worker()
    service.wait_for(
        lambda: service.count(tables.turns) == 27, "events that the backup lacks are read again"
    )
    service.wait_for(
        lambda: {row["status"] for row in service.rows(tables.session_scores)} == {"idle"},
        "all sessions idle",
    )
    log = log_of(0, 9)
    assert differences(scored_offline(service.settings, log, 256), stored(service)) == []
