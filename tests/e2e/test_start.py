"""A worker whose broker or topic does not exist at the start."""

import asyncio
from pathlib import Path
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from stream_app.demo import up
from stream_app.store.database import tables
from stream_app.worker.kafka import broker
from stream_app.worker.kafka.topics import client_options
from tests.conftest import NewService
from tests.e2e.service import Service
from tests.store.batches import turn


def test_a_worker_waits_for_a_late_broker(tmp_path: Path) -> None:
    port = broker.free_port()
    with broker.running(port):
        service = Service(tmp_path, kafka_brokers=f"127.0.0.1:{port}")
    try:
        service.start_worker()
        with broker.running(port):
            up.prepare(service.settings)
            service.send([turn(0)])
            service.wait_for(lambda: service.count(tables.turns) == 1, "the turn is stored")
    finally:
        service.close()


def test_a_topic_created_later_is_read(new_service: NewService) -> None:
    service = new_service()
    prefix = f"{service.settings.topic_prefix}-later"
    service.settings = service.settings.model_copy(
        update={"topic_prefix": prefix, "topic_partitions": 0}
    )
    worker = service.start_worker()
    asyncio.run(make(service, service.settings.topics))
    service.send([turn(0)])
    if not seen(service, worker):
        service.start_worker()  # as a supervisor restarts an exited worker
    service.wait_for(lambda: service.count(tables.turns) == 1, "the turn is stored")


def seen(service: Service, worker: Any) -> bool:
    service.wait_for(
        lambda: service.count(tables.turns) == 1 or worker.poll() is not None,
        "the worker reads the topic or exits",
    )
    return service.count(tables.turns) == 1


async def make(service: Service, names: list[str]) -> None:
    client = AIOKafkaAdminClient(**client_options(service.settings))
    await client.start()
    try:
        await client.create_topics([NewTopic(name, 3, 1) for name in names])
    finally:
        await client.close()
