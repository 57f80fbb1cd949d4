"""The topic of the turns is deleted and recreated while a worker runs."""

import asyncio
import time
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from stream_app.store.database import tables
from stream_app.worker.kafka.topics import client_options, declare_topics
from tests.conftest import NewService
from tests.e2e.service import Service
from tests.store.batches import turn

pytestmark = pytest.mark.services
SOON = 40.0
"""Seconds, including the restart of a worker with records in progress."""


async def make_anew(service: Service) -> None:
    client = AIOKafkaAdminClient(**client_options(service.settings))
    await client.start()
    try:
        await client.delete_topics([service.settings.turns_topic])
    finally:
        await client.close()
    await asyncio.sleep(2.0)
    await declare_topics(service.settings)


def restart_if_exited(service: Service, worker: Any) -> Any:
    """Restart an exited worker, as a supervisor does."""
    return worker if worker.poll() is None else service.start_worker()


@pytest.mark.parametrize("many", [3, 60])
def test_events_in_a_recreated_topic_are_read_soon(new_service: NewService, many: int) -> None:
    service = new_service(topic_partitions=1)
    worker = service.start_worker()
    service.send([turn(seq, session_id="old") for seq in range(30)])
    service.wait_for(lambda: service.count(tables.turns) == 30, "the old topic is read")
    time.sleep(1.0)  # its offsets are committed
    asyncio.run(make_anew(service))
    service.send([turn(seq, session_id="new") for seq in range(many)])
    began = time.monotonic()
    while service.count(tables.turns) < 30 + many:
        worker = restart_if_exited(service, worker)
        assert time.monotonic() - began < SOON, (service.folder / "worker.log").read_text()[-3000:]
        time.sleep(0.2)
    print(f"{many} events of the new topic after {time.monotonic() - began:.1f} s")
    [position] = service.rows(tables.log_positions)
    assert position["next_offset"] == many
