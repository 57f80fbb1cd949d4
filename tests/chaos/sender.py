"""Sends the log in its own thread, and stops where a fault needs that."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, nullcontext
from itertools import pairwise

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from stream_app.settings import Settings
from stream_app.worker.kafka.topics import client_options
from tests.chaos import batches
from tests.chaos.batches import Batch
from tests.chaos.traffic import Log, Sent

PATIENCE = 900.0
TRANSACTIONAL, ABORTING = "chaos-committing", "chaos-aborting"
TRANSACTION_MS = 600_000
"""How long a transaction may be open; longer than any fault delays it."""


class Sender:
    """``holds``: shares of the log after which it waits for ``release``, in ascending order."""

    def __init__(self, settings: Settings, log: Log, holds: Sequence[float], seed: int) -> None:
        self.total = len(log)
        self.sent = 0
        self.faults: Counter[str] = Counter()
        """How many batches were sent with which codec, and how many transactions how."""
        self._settings = settings
        self._log = log
        self._chance = random.Random(f"batches-{seed}")
        self._holds = [round(hold * len(log)) for hold in holds]
        self._released = threading.Semaphore(0)
        self._problem: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="sender", daemon=True)
        self._thread.start()

    def wait_for(self, share: float, stored_share: Callable[[], float]) -> None:
        """Wait until a share is sent and the workers are at most a given number behind."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up and self._problem is None:
            if self.sent >= round(share * self.total) and stored_share() >= share * 0.7:
                return
            time.sleep(0.1)

    def release(self) -> None:
        """Continue after a hold."""
        self._released.release()

    def finish(self) -> None:
        """Wait until everything is sent."""
        self._thread.join(PATIENCE)
        if self._problem is not None or self._thread.is_alive():
            raise AssertionError(f"the traffic could not be sent: {self._problem}")

    def _run(self) -> None:
        try:
            for first, last in pairwise([0, *self._holds, self.total]):
                planned = batches.planned(self._log[first:last], self._chance)
                asyncio.run(send(self._settings, planned, self._count))
                if last < self.total:
                    self._released.acquire(timeout=PATIENCE)
        except Exception as problem:  # noqa: BLE001  # reported by `finish`
            self._problem = problem

    def _count(self, batch: Batch) -> None:
        self.sent += len(batch.records)
        self.faults.update(batch.faults)


async def send(
    settings: Settings, planned: Iterable[Batch], report: Callable[[Batch], None] = lambda _: None
) -> None:
    """Produce each record once and in order, also across broker restarts."""
    for batch in planned:
        name = TRANSACTIONAL if batch.in_transaction else None
        async with _producer(settings, batch.codec, name) as producer:
            if batch.aborted:
                await _beside_aborted(settings, producer, batch)
            else:
                await _send_batch(settings, producer, batch)
        report(batch)


async def _beside_aborted(settings: Settings, producer: AIOKafkaProducer, batch: Batch) -> None:
    """Send the batch while another producer's transaction is open."""
    async with _producer(settings, batch.codec, ABORTING) as other:
        await other.begin_transaction()
        await _produce(settings, other, batch.aborted)
        await _send_batch(settings, producer, batch)
        await other.abort_transaction()


async def _send_batch(settings: Settings, producer: AIOKafkaProducer, batch: Batch) -> None:
    async with producer.transaction() if batch.in_transaction else nullcontext():
        await _produce(settings, producer, batch.records)


async def _produce(settings: Settings, producer: AIOKafkaProducer, records: Sequence[Sent]) -> None:
    sending = [
        await producer.send(
            settings.turns_topic,
            record.value,
            key=record.key,
            timestamp_ms=_milliseconds(record),
        )
        for record in records
    ]
    await asyncio.gather(*sending)


@asynccontextmanager
async def _producer(
    settings: Settings, codec: str | None, transactional_id: str | None
) -> AsyncIterator[AIOKafkaProducer]:
    """A producer; while no broker answers, it is tried again to start one."""
    while True:
        producer = AIOKafkaProducer(
            **client_options(settings),
            enable_idempotence=True,
            transactional_id=transactional_id,
            transaction_timeout_ms=TRANSACTION_MS,
            compression_type=codec,
            request_timeout_ms=120_000,
            retry_backoff_ms=200,
            max_request_size=2**25,
        )
        try:
            await producer.start()
            break
        except KafkaError:
            await producer.stop()
            await asyncio.sleep(0.5)
    try:
        yield producer
    finally:
        await producer.stop()


def _milliseconds(record: Sent) -> int | None:
    return round(record.produced_at.timestamp() * 1000) if record.produced_at else None
