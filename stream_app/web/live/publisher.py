"""Kafka producer of the web process: events received over HTTP, and actions on alerts."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from contextvars import Context
from typing import Any, Final

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import BrokerResponseError, KafkaError

from stream_app.contracts.cloudevents import outgoing_headers
from stream_app.errors import BrokerUnavailable

log = structlog.get_logger(__name__)

START_TIMEOUT: Final = 5.0
REQUEST_TIMEOUT_MS: Final = 10_000


class Publisher:
    """A producer that connects on first use and waits for all in-sync replicas.

    It is idempotent if the brokers support that; the embedded broker does not.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._producer: AIOKafkaProducer | None = None
        self._starting = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def bind_loop(self) -> None:
        """Remember the running event loop; call this before ``send_in_background``."""
        self._loop = asyncio.get_running_loop()

    async def close(self) -> None:
        """Flush and disconnect; sending again reconnects."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.stop()

    async def send(
        self,
        topic: str,
        key: bytes,
        value: bytes,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> "asyncio.Future[Any]":
        """Queue a record; the future resolves to its metadata (topic, partition, offset).

        Raises:
            BrokerUnavailable: no broker can be reached, or it rejects the record.
        """
        producer = await self._connected()
        try:
            future: asyncio.Future[Any] = await producer.send(
                topic, value, key=key, headers=list(headers)
            )
        except KafkaError as problem:
            raise BrokerUnavailable(
                f"the broker accepts no records at the moment ({type(problem).__name__})"
            ) from problem
        return future

    def send_in_background(self, topic: str, key: bytes, value: bytes, message_type: str) -> None:
        """Send a message without waiting, from any thread; failures are only logged."""
        if self._loop is not None:
            sending = self._send_or_log(topic, key, value, message_type)
            asyncio.run_coroutine_threadsafe(sending, self._loop)

    async def _send_or_log(self, topic: str, key: bytes, value: bytes, message_type: str) -> None:
        try:
            headers = outgoing_headers(message_type, value)
            await (await self.send(topic, key, value, headers))
        except (KafkaError, BrokerUnavailable) as problem:
            log.warning("publish.failed", topic=topic, problem=type(problem).__name__)

    async def _connected(self) -> AIOKafkaProducer:
        async with self._starting:
            if self._producer is None:
                try:
                    self._producer = await self._start(idempotent=True)
                except BrokerResponseError as problem:  # reached, but without idempotence
                    log.warning("publish.not-idempotent", problem=type(problem).__name__)
                    self._producer = await self._start(idempotent=False)
            return self._producer

    async def _start(self, *, idempotent: bool) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            **self._options,
            acks="all",
            enable_idempotence=idempotent,
            linger_ms=0,  # what comes during a request goes together in the next one
            request_timeout_ms=REQUEST_TIMEOUT_MS,
        )
        try:
            # Its tasks outlive this request: they must not log with the request's trace id.
            starting = asyncio.create_task(producer.start(), context=Context())
            await asyncio.wait_for(starting, START_TIMEOUT)
        except BaseException as problem:
            with suppress(KafkaError):
                await producer.stop()
            if idempotent and isinstance(problem, BrokerResponseError):
                raise
            if isinstance(problem, KafkaError | TimeoutError | OSError):
                raise BrokerUnavailable(
                    "no Kafka broker can be reached; try again later"
                ) from problem
            raise
        return producer
