"""Connection options of Kafka clients, and the creation of topics."""

import ssl
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
    retry_if_exception_type,
    stop_after_delay,
    wait_random_exponential,
)

from stream_app.errors import BrokerUnavailable
from stream_app.settings import SecurityProtocol, Settings

DAY_MS: Final = 86_400_000
TURNS_TOPIC_CONFIG: Final = {"message.timestamp.type": "LogAppendTime"}
"""Records have the broker's time, so that deadlines do not depend on producers' clocks."""
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
        BrokerUnavailable: the addresses or the CA file are not valid.
    """
    try:
        collect_hosts(settings.kafka_brokers)
    except ValueError:
        raise BrokerUnavailable(
            f"RAPPORT_KAFKA_BROKERS is {settings.kafka_brokers!r}; "
            "it must be host:port, separated by commas"
        ) from None
    options: dict[str, Any] = {
        "bootstrap_servers": settings.kafka_brokers,
        "security_protocol": settings.kafka_security.value,
    }
    if settings.kafka_security in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL):
        options["ssl_context"] = ssl_context(settings)
    if settings.kafka_security in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL):
        options["sasl_mechanism"] = settings.kafka_sasl_mechanism.value
        options["sasl_plain_username"] = settings.kafka_username
        options["sasl_plain_password"] = (
            settings.kafka_password.get_secret_value() if settings.kafka_password else None
        )
    return options


def ssl_context(settings: Settings) -> ssl.SSLContext:
    """Trust the system's certificate authorities, or only RAPPORT_KAFKA_CA_FILE."""
    try:
        return ssl.create_default_context(cafile=settings.kafka_ca_file)
    except OSError as problem:
        raise BrokerUnavailable(f"RAPPORT_KAFKA_CA_FILE cannot be loaded: {problem}") from problem


def topic_options(settings: Settings, name: str) -> dict[str, str]:
    """Options of a topic that Rapport creates."""
    options = {"retention.ms": str(settings.topic_days * DAY_MS)}
    if name == settings.turns_topic:
        return options | TURNS_TOPIC_CONFIG
    return options | DEAD_LETTER_TOPIC_CONFIG if name == settings.dead_letter_topic else options


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
            reraise=True,
        ):
            with attempt:
                await client.start()
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
        raise BrokerUnavailable(
            f"no Kafka broker answers at {settings.kafka_brokers} ({type(problem).__name__}); "
            "check RAPPORT_KAFKA_BROKERS, or start one with `rapport broker`"
        ) from problem
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
