"""Every compression codec of Kafka is read, and a missing one is reported."""

import asyncio

import aiokafka.codec
import pytest
from aiokafka import AIOKafkaProducer

from stream_app.processes import doctor
from stream_app.settings import Settings
from stream_app.store.database import tables
from stream_app.worker.kafka import codecs
from stream_app.worker.kafka.topics import client_options
from tests.conftest import NewService
from tests.e2e.service import Service
from tests.store.batches import turn

TEXT = "I feel so alone since the move. " * 20


def test_all_codecs_are_read() -> None:
    assert codecs.unreadable() == []
    assert doctor._finding("codecs", doctor._codecs, Settings()).healthy


def test_the_doctor_names_codecs_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aiokafka.codec, "cramjam", None)
    found = doctor._finding("codecs", doctor._codecs, Settings())
    assert not found.healthy
    assert "compressed with snappy, lz4, zstd cannot be read" in found.detail


async def send_compressed(service: Service, codec: str) -> None:
    options = {**client_options(service.settings), "compression_type": codec}
    async with AIOKafkaProducer(**options) as producer:
        for seq in range(2):
            event = turn(seq, session_id=codec, text=TEXT)
            await producer.send(service.settings.turns_topic, event, key=codec.encode())
        await producer.flush()


@pytest.mark.services
def test_a_worker_reads_batches_of_all_codecs(new_service: NewService) -> None:
    service = new_service(topic_partitions=1)
    service.start_worker()
    for codec in codecs.CODECS:
        asyncio.run(send_compressed(service, codec))
    service.wait_for(lambda: service.count(tables.turns) == 8, "the turns of all codecs are stored")
