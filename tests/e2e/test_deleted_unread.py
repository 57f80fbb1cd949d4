"""Events that the topic's retention deletes before a worker has read them are reported."""

import asyncio
import urllib.request
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

from stream_app.processes.doctor import run_checks
from stream_app.store.database import tables
from stream_app.worker.kafka import broker
from stream_app.worker.kafka.topics import client_options
from tests.conftest import NewService
from tests.e2e.service import Service
from tests.store.batches import turn

pytestmark = pytest.mark.services


async def delete_before(service: Service, offset: int) -> None:
    client = AIOKafkaAdminClient(**client_options(service.settings))
    await client.start()
    try:
        place = TopicPartition(service.settings.turns_topic, 0)
        await client.delete_records({place: RecordsToDelete(before_offset=offset)})
    finally:
        await client.close()


def stop(worker: Any) -> None:
    worker.terminate()
    worker.wait()


def metric(service: Service, name: str) -> float:
    url = f"http://127.0.0.1:{service.settings.health_port}/metrics"
    with urllib.request.urlopen(url) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


def doctor_on_the_log(service: Service) -> tuple[bool, str]:
    [found] = [each for each in run_checks(service.settings) if each.name == "log"]
    return found.healthy, found.detail


@pytest.mark.parametrize("something_follows", [False, True])
def test_deleted_events_are_counted_and_are_no_lag(
    new_service: NewService, something_follows: bool
) -> None:
    service = new_service(topic_partitions=1, health_port=broker.free_port())
    worker = service.start_worker()
    service.send([turn(seq, session_id="read") for seq in range(4)])
    service.wait_for(lambda: service.count(tables.turns) == 4, "the first turns are read")
    stop(worker)
    assert doctor_on_the_log(service)[0]
    service.send([turn(seq, session_id="unread") for seq in range(6)])
    asyncio.run(delete_before(service, 10))
    found = doctor_on_the_log(service)
    assert (found[0], "6 events were deleted" in found[1]) == (False, True)
    if something_follows:
        service.send([turn(seq, session_id="late") for seq in range(2)])
    service.start_worker()
    log = service.folder / "worker.log"
    service.wait_for(lambda: "log.deleted" in log.read_text("utf-8"), "the worker warns")
    expected = 12 if something_follows else 10

    def position() -> int:
        return int(service.rows(tables.log_positions)[0]["next_offset"])

    service.wait_for(lambda: position() == expected, "the worker goes on behind them")
    service.wait_for(lambda: metric(service, "rapport_lag_events{") == 0, "there is no lag")
    assert metric(service, "rapport_deleted_unread_events_total") == 6
    found = doctor_on_the_log(service)
    assert (found[0], "6 events were deleted" in found[1]) == (False, True)
    assert log.read_text("utf-8").count("log.deleted ") == 1
