"""What an administrator learns from the broker: the ends of the log, and who is in the group."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from stream_app.settings import Settings
from stream_app.web.live.log_ends import BrokerAnswer, LogEnds
from stream_app.worker.kafka.topics import client_options, declare_topics


async def test_ends_and_members_are_read_and_nothing_is_created(embedded_broker: str) -> None:
    settings = Settings().model_copy(
        update={
            "kafka_brokers": embedded_broker,
            "topic_prefix": "ends",
            "kafka_group": "ends",
            "topic_partitions": 2,
        }
    )
    options = client_options(settings)
    ends = LogEnds(options, settings.turns_topic, settings.kafka_group)
    assert await ends.read() == BrokerAnswer(None, [])
    await declare_topics(settings)
    producer = AIOKafkaProducer(**options)
    await producer.start()
    for _ in range(3):
        await producer.send_and_wait(settings.turns_topic, b"{}", partition=0)
    await producer.stop()
    assert await ends.read() == BrokerAnswer({0: 3, 1: 0}, [])
    worker = AIOKafkaConsumer(
        settings.turns_topic,
        group_id=settings.kafka_group,
        auto_offset_reset="earliest",
        **options,
    )
    await worker.start()
    await worker.getone()
    found = await ends.read()
    await worker.stop()
    assert found.workers is not None
    [name] = found.workers
    assert name.strip()
    assert await asyncio.gather(ends.read(), ends.read()) == 2 * [await ends.read()]
    await ends.close()
    assert (await ends.read()).ends == {0: 3, 1: 0}
    await ends.close()


async def test_without_a_broker_nothing_is_known() -> None:
    options = {"bootstrap_servers": "127.0.0.1:1"}
    assert await LogEnds(options, "t", "g").read() == BrokerAnswer(None, None)
