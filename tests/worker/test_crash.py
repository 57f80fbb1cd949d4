"""A crashing worker acknowledges nothing, and the next one loses nothing."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from stream_app.store import tables
from tests.conftest import NewService
from tests.e2e.service import Service
from tests.store.batches import turn

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
