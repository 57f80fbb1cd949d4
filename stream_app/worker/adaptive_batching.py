"""Batches of all pending events, without waiting for a batch to fill.

Faust's ``noack_take`` waits until its time-out unless a batch gets full: the encoder of a busy
worker idles meanwhile, and a lone turn waits for turns that never arrive. Here a batch contains the
events that arrived while the previous one was prepared, so batches grow with the load.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any


async def batches(stream: Any, limit: int) -> AsyncGenerator[list[Any], None]:
    """Batches of 1 to ``limit`` unacknowledged events of a Faust stream, in order.

    Ends with the stream and passes on its exceptions. At most ``limit`` events are buffered. Close
    the generator (``contextlib.aclosing``) when leaving it early.
    """
    waiting: asyncio.Queue[Any] = asyncio.Queue(limit)
    collecting = asyncio.create_task(_collect(stream, waiting))
    try:
        while batch := await _next_batch(waiting, collecting):
            yield batch
        await collecting
    finally:
        collecting.cancel()


async def _collect(stream: Any, waiting: asyncio.Queue[Any]) -> None:
    async for event in stream.noack().events():
        await waiting.put(event)


async def _next_batch(waiting: asyncio.Queue[Any], collecting: asyncio.Task[None]) -> list[Any]:
    """All pending events, or the next one to arrive; empty once the stream has ended."""
    if waiting.empty():
        arrival = asyncio.create_task(waiting.get())
        try:
            await asyncio.wait({arrival, collecting}, return_when=asyncio.FIRST_COMPLETED)
            found = [arrival.result()] if arrival.done() else []
        finally:
            arrival.cancel()
    else:
        found = [waiting.get_nowait()]
    while not waiting.empty() and len(found) < waiting.maxsize:
        found.append(waiting.get_nowait())
    return found
