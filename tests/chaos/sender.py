"""Sends the log in its own thread, and stops where a fault needs that."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise

from aiokafka import AIOKafkaProducer

from stream_app.settings import Settings
from stream_app.worker.topics import client_options
from tests.chaos.traffic import Log, Sent

PATIENCE = 900.0
AT_A_TIME = 200


class Sender:
    """``holds``: shares of the log after which it waits for ``release``, in ascending order."""

    def __init__(self, settings: Settings, log: Log, holds: Sequence[float]) -> None:
        self.total = len(log)
        self.sent = 0
        self._settings = settings
        self._log = log
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
                asyncio.run(send(self._settings, self._log[first:last], self._count))
                if last < self.total:
                    self._released.acquire(timeout=PATIENCE)
        except Exception as problem:  # noqa: BLE001  # reported by `finish`
            self._problem = problem

    def _count(self, records: int) -> None:
        self.sent += records


async def send(
    settings: Settings, log: Sequence[Sent], report: Callable[[int], None] = lambda _: None
) -> None:
    """Produce each record once and in order, also across broker restarts."""
    producer = AIOKafkaProducer(
        **client_options(settings),
        enable_idempotence=True,
        request_timeout_ms=120_000,
        retry_backoff_ms=200,
        max_request_size=2**25,
    )
    await producer.start()
    try:
        for start in range(0, len(log), AT_A_TIME):
            part = log[start : start + AT_A_TIME]
            sending = [
                await producer.send(
                    settings.turns_topic,
                    record.value,
                    key=record.key,
                    timestamp_ms=_milliseconds(record),
                )
                for record in part
            ]
            await asyncio.gather(*sending)
            report(len(part))
    finally:
        await producer.stop()


def _milliseconds(record: Sent) -> int | None:
    return round(record.produced_at.timestamp() * 1000) if record.produced_at else None
