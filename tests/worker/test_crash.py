"""A crashing worker acknowledges nothing, and the next one loses nothing."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from stream_app.store.database import tables
from tests.conftest import NewService
from tests.e2e.service import Service, differences, scored_offline, stored
from tests.store.batches import end, turn

pytestmark = pytest.mark.slow


def rename(service: Service, old: str, new: str) -> None:
    with service.store.engine.begin() as connection:
        connection.execute(sa.text(f"ALTER TABLE {old} RENAME TO {new}"))


def test_turns_refused_by_the_store_are_read_again_after_a_restart(
    new_service: NewService, tmp_path: Path
) -> None:
    service = new_service(topic_partitions=1, batch_max=4)
    worker = service.start_worker()
    service.send([turn(0)])
    service.wait_for(lambda: service.count(tables.turns) == 1, "the first turn is stored")
    rename(service, "turns", "turns_away")
    service.send([turn(seq, text="zanzibar") for seq in range(1, 12)])
    service.wait_for(lambda: worker.poll() is not None, "the worker ends")
    assert worker.returncode == 1
    assert "zanzibar" not in (tmp_path / "worker.log").read_text("utf-8")
    rename(service, "turns_away", "turns")
    service.start_worker()
    service.wait_for(lambda: service.count(tables.turns) == 12, "no turn is lost")


def test_a_kill_in_fair_order_loses_and_doubles_nothing(new_service: NewService) -> None:
    """Quiet sessions are stored beyond the position, which stays with the noisy one."""
    service = new_service(topic_partitions=1, batch_max=16)
    noisy = [turn(seq, session_id="noisy") for seq in range(400)]
    quiet = [turn(seq, session_id=f"quiet-{n}") for n in range(8) for seq in range(4)]
    log = [*noisy[:200], *quiet, *noisy[200:]]
    log += [end(session_id=session) for session in ("noisy", *(f"quiet-{n}" for n in range(8)))]
    service.send(log)
    worker = service.start_worker()

    def stored_of(session: str) -> int:
        return sum(row["session_id"] == session for row in service.rows(tables.turns))

    service.wait_for(lambda: stored_of("quiet-7") == 4, "the last quiet session is stored")
    service.kill(worker)
    assert stored_of("noisy") < 200, "which came before it in the log"
    [position] = service.rows(tables.log_positions)
    assert position["next_offset"] < 200
    service.start_worker()
    service.wait_for(
        lambda: [row["status"] for row in service.rows(tables.session_scores)] == ["closed"] * 9,
        "all sessions ended",
    )
    assert differences(scored_offline(service.settings, log, 256), stored(service)) == []
