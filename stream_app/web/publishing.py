"""Sends what comes in over HTTP to Kafka: events of platforms, people's actions on alerts."""

import asyncio
from contextlib import suppress
from typing import Any, Final

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import BrokerResponseError, KafkaError

from stream_app.errors import BrokerUnavailable

log = structlog.get_logger(__name__)

START_WITHIN: Final = 5.0
SENT_WITHIN_MS: Final = 10_000


class Publisher:
    """A producer that starts when it is first needed and waits for all replicas.

    It is idempotent where the brokers know that; the embedded one does not.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._producer: AIOKafkaProducer | None = None
        self._starting = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def opened(self) -> None:
        """Call once on the event loop."""
        self._loop = asyncio.get_running_loop()

    async def close(self) -> None:
        """Send what waits and disconnect; the next record makes a new connection."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.stop()

    async def send(self, topic: str, key: bytes, value: bytes) -> "asyncio.Future[Any]":
        """Hand a record to the producer; the future tells where it stands in the log.

        Raises:
            BrokerUnavailable: no broker answers.
        """
        producer = await self._started()
        try:
            future: asyncio.Future[Any] = await producer.send(topic, value, key=key)
        except KafkaError as problem:
            raise BrokerUnavailable(
                f"the broker takes nothing at the moment ({type(problem).__name__})"
            ) from problem
        return future

    def tell(self, topic: str, key: bytes, value: bytes) -> None:
        """Send without waiting, from any thread; a loss is only logged."""
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(self._tell(topic, key, value), self._loop)

    async def _tell(self, topic: str, key: bytes, value: bytes) -> None:
        try:
            await (await self.send(topic, key, value))
        except (KafkaError, BrokerUnavailable) as problem:
            log.warning("publish.lost", topic=topic, problem=type(problem).__name__)

    async def _started(self) -> AIOKafkaProducer:
        async with self._starting:
            if self._producer is None:
                try:
                    self._producer = await self._start(idempotent=True)
                except BrokerResponseError as problem:  # it answered, and has no idempotence
                    log.warning("publish.not-idempotent", problem=type(problem).__name__)
                    self._producer = await self._start(idempotent=False)
            return self._producer

    async def _start(self, *, idempotent: bool) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            **self._options,
            acks="all",
            enable_idempotence=idempotent,
            linger_ms=5,
            request_timeout_ms=SENT_WITHIN_MS,
        )
        try:
            await asyncio.wait_for(producer.start(), START_WITHIN)
        except BaseException as problem:
            with suppress(KafkaError):
                await producer.stop()
            if idempotent and isinstance(problem, BrokerResponseError):
                raise
            if isinstance(problem, KafkaError | TimeoutError | OSError):
                raise BrokerUnavailable("no Kafka broker answers; try again later") from problem
            raise
        return producer
