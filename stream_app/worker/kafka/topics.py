"""Connection options of Kafka clients, and the creation of topics."""

from typing import Any, Final

import structlog
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.conn import collect_hosts
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaError,
    TopicAlreadyExistsError,
    for_code,
)
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_delay,
    wait_random_exponential,
)

from stream_app.errors import BrokerUnavailable
from stream_app.settings import Settings
from stream_app.worker.kafka.kafka_security import security_options
from stream_app.worker.kafka.refusal import explain, quiet_client, refusal

DAY_MS: Final = 86_400_000
BROKER_TIME: Final = {"message.timestamp.type": "LogAppendTime"}
"""Records have the broker's time, so that deadlines do not depend on producers' clocks, and that no
broker refuses the scores of a worker whose clock is far ahead."""
DEAD_LETTER_TOPIC_CONFIG: Final = {
    "cleanup.policy": "compact,delete",
    "segment.ms": str(DAY_MS),
    "max.compaction.lag.ms": str(DAY_MS),
}
"""A record without a value withdraws the record with its key, which is deleted within two days."""

log = structlog.get_logger(__name__)


def client_options(settings: Settings) -> dict[str, Any]:
    """Connection options of all aiokafka clients.

    Raises:
        BrokerUnavailable: the addresses or the settings of security are not valid.
    """
    try:
        collect_hosts(settings.kafka_brokers)
    except ValueError:
        raise BrokerUnavailable(
            f"RAPPORT_KAFKA_BROKERS is {settings.kafka_brokers!r}; "
            "it must be host:port, separated by commas"
        ) from None
    return {"bootstrap_servers": settings.kafka_brokers, **security_options(settings)}


def topic_options(settings: Settings, name: str) -> dict[str, str]:
    """Options of a topic that Rapport creates."""
    options = {"retention.ms": str(settings.topic_days * DAY_MS), **BROKER_TIME}
    return options | DEAD_LETTER_TOPIC_CONFIG if name == settings.dead_letter_topic else options


def stable_end(highwater: int | None, last_stable: int | None) -> int | None:
    """The end of a partition's committed records as of a fetch; None before the first one.

    A broker without transactions may know no last stable offset.
    """
    known = highwater is not None and last_stable is not None and last_stable >= 0
    return last_stable if known else highwater


async def declare_topics(settings: Settings, patience: float = 30.0) -> list[str]:
    """Create missing topics; return their names.

    Raises:
        BrokerUnavailable: no broker answered within ``patience`` seconds, or it refused.
    """
    client = AIOKafkaAdminClient(**client_options(settings))
    try:
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type(KafkaConnectionError),
            wait=wait_random_exponential(multiplier=0.2, max=3.0),
            stop=stop_after_delay(patience),
            before_sleep=lambda attempt: _log_wait(settings, attempt),
            reraise=True,
        ):
            with attempt:
                await _start(client, settings)
        answer = await client.create_topics(
            [
                NewTopic(
                    name,
                    settings.topic_partitions,
                    settings.topic_replication,
                    topic_configs=topic_options(settings, name),
                )
                for name in settings.topics
            ]
        )
    except KafkaError as problem:
        raise await explain(settings, problem) from problem
    finally:
        await client.close()
    created = []
    for name, code, *_ in answer.topic_errors:
        problem_type = for_code(code)
        if code == 0:
            created.append(name)
        elif problem_type is not TopicAlreadyExistsError:
            raise BrokerUnavailable(f"the topic {name} cannot be created: {problem_type.__name__}")
    if created:
        log.info("topics.created", topics=created, partitions=settings.topic_partitions)
    return created


def _log_wait(settings: Settings, attempt: RetryCallState) -> None:
    if attempt.attempt_number == 1:
        log.info("broker.waiting", brokers=settings.kafka_brokers)


async def _start(client: AIOKafkaAdminClient, settings: Settings) -> None:
    """Start a client; do not wait for a broker that refuses it."""
    try:
        with quiet_client():
            await client.start()
    except KafkaConnectionError:
        if (found := await refusal(settings)) and found.certain:
            raise BrokerUnavailable(found.reason) from None
        raise
