"""Publishes what a batch has committed: its messages, then its dead letters."""

from collections.abc import Sequence
from typing import Any

import structlog
from aiokafka.errors import MessageSizeTooLargeError
from faust.exceptions import ProducerSendError

from stream_app.contracts import scores
from stream_app.contracts.events import MAX_EVENT_BYTES
from stream_app.contracts.scores import DEAD_LETTER_HEADER, DeadLetter
from stream_app.core.session.batch import SetAside
from stream_app.core.session.ports import Message, TraceHeaders
from stream_app.tracing.port import Tracing
from stream_app.worker.kafka.app import RapportApp
from stream_app.worker.kafka.publishing import publish

log = structlog.get_logger(__name__)


class Publisher:
    """Publishes with the producer of a Faust app, and waits until the brokers have all."""

    def __init__(self, app: RapportApp, dead_letter_topic: str, tracing: Tracing) -> None:
        self._app = app
        self._dead_letter_topic = dead_letter_topic
        self._tracing = tracing

    async def client(self) -> Any:
        """The client's producer, because Faust's cannot send record batches."""
        producer: Any = await self._app.maybe_start_producer()
        return producer._ensure_producer()  # noqa: SLF001

    async def publish(self, messages: Sequence[Message], dead_letters: Sequence[SetAside]) -> None:
        """Send the messages, then the dead letters."""
        await publish(await self.client(), messages)
        for item in dead_letters:
            await self._send_dead_letter(await self._app.maybe_start_producer(), item)

    async def _send_dead_letter(self, producer: Any, item: SetAside) -> None:
        """Send the original bytes, truncated if the brokers refuse that many."""
        letter = item.letter
        with self._tracing.dead_letter(letter) as trace:
            log.warning(
                "event.dead_letter",
                reason=letter.reason,
                partition=letter.partition,
                offset=letter.offset,
            )
            try:
                await self._send_raw(producer, letter, item.raw, trace)
            except (ProducerSendError, MessageSizeTooLargeError):
                if len(item.raw) <= MAX_EVENT_BYTES:
                    raise
                await self._send_raw(producer, letter, item.raw[:MAX_EVENT_BYTES], trace)

    async def _send_raw(
        self, producer: Any, letter: DeadLetter, value: bytes, trace: TraceHeaders
    ) -> None:
        sent = await producer.send(
            self._dead_letter_topic,
            letter.dead_letter_id.encode(),
            value,
            None,
            None,
            [(DEAD_LETTER_HEADER, scores.encode(letter)), *trace],
        )
        await sent
