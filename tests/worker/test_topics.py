"""Topics are created with a retention time; dead letters can be withdrawn."""

import asyncio

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from servers.kafka import Cluster
from stream_app.settings import Settings
from stream_app.worker.kafka.topics import client_options, declare_topics, topic_options
from tests.conftest import own_names


def test_every_topic_has_a_retention_time_and_only_dead_letters_are_compacted() -> None:
    settings = Settings().model_copy(update={"topic_days": 3})
    options = {name: topic_options(settings, name) for name in settings.topics}
    assert {each["retention.ms"] for each in options.values()} == {str(3 * 24 * 3600 * 1000)}
    compacted = [name for name, each in options.items() if "cleanup.policy" in each]
    assert compacted == [settings.dead_letter_topic]
    assert {each["message.timestamp.type"] for each in options.values()} == {"LogAppendTime"}


@pytest.mark.services
def test_kafka_accepts_the_options(cluster: Cluster) -> None:
    settings = Settings().model_copy(
        update={"kafka_brokers": cluster.address, "topic_days": 3, **own_names()}
    )

    async def configured(name: str) -> dict[str, str]:
        client = AIOKafkaAdminClient(**client_options(settings))
        await client.start()
        try:
            [answer] = await client.describe_configs(
                [ConfigResource(ConfigResourceType.TOPIC, name)]
            )
            [(*_, entries)] = answer.resources
            return {key: value for key, value, *_ in entries}
        finally:
            await client.close()

    asyncio.run(declare_topics(settings))
    for name in settings.topics:
        found = asyncio.run(configured(name))
        for key, value in topic_options(settings, name).items():
            assert sorted(found[key].split(",")) == sorted(value.split(",")), (name, key)
