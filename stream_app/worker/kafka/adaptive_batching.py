"""Batches of pending events, without waiting for a batch to fill.

Faust's ``noack_take`` waits until its time-out unless a batch gets full: the encoder of a busy
worker idles meanwhile, and a lone turn waits for turns that never arrive. Here a batch contains the
events that arrived while the previous one was prepared, so batches grow with the load. If more have
arrived than a batch takes, sessions take turns (``fair_order``).
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Hashable
from typing import Any, Final

from stream_app.worker.kafka.fair_order import FairLine

BATCHES_AHEAD: Final = 16
"""An event is overtaken only by those of so many batches behind it.

So many events are read again at most after a crash, although they are stored.
"""

Admit = Callable[[Any], tuple[Hashable, Hashable]]
"""Called for each event as it arrives, in log order; returns its partition and session."""


class Batching:
    """The events that have arrived and are in no batch yet."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._line: FairLine[Any] = FairLine()
        self._arrived = asyncio.Event()
        self._has_room = asyncio.Event()

    async def batches(self, stream: Any, admit: Admit) -> AsyncGenerator[list[Any], None]:
        """Batches of 1 to ``limit`` unacknowledged events of a Faust stream, in log order.

        Ends with the stream and passes on its exceptions and those of ``admit``. Close the
        generator (``contextlib.aclosing``) when leaving it early.
        """
        collecting = asyncio.create_task(self._collect(stream, admit))
        try:
            while await self._any_waits(collecting):
                batch = self._line.take(self.limit)
                self._has_room.set()
                yield batch
            await collecting
        finally:
            collecting.cancel()

    def leave(self) -> list[Any]:
        """Remove and return the events that are in no batch."""
        left = self._line.clear()
        self._has_room.set()
        return left

    async def _collect(self, stream: Any, admit: Admit) -> None:
        async for event in stream.noack().events():
            self._line.add(*admit(event), event)
            self._arrived.set()
            while self._line.reach >= BATCHES_AHEAD * self.limit:
                self._has_room.clear()
                await self._has_room.wait()

    async def _any_waits(self, collecting: asyncio.Task[None]) -> bool:
        """Wait for an event; False if there is none and the stream has ended."""
        while not self._line and not collecting.done():
            self._arrived.clear()
            arrival = asyncio.create_task(self._arrived.wait())
            try:
                await asyncio.wait({arrival, collecting}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                arrival.cancel()
        return bool(self._line)
