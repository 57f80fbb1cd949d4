"""Batches of whatever has come; nobody waits for a batch to fill.

Faust's ``noack_take`` waits its time out unless a batch gets full, however many events lie there:
the encoder of a busy worker stands still meanwhile, and a lone turn waits for turns that do not
come. Here a batch is what gathered while the one before was read, so batches grow with the load by
themselves.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any


async def batches(stream: Any, most: int) -> AsyncGenerator[list[Any], None]:
    """Events of a Faust stream in their order, unacknowledged, at least 1 and at most ``most``.

    Ends where the stream ends, and raises what it raises. At most ``most`` events wait here.
    Close it (``contextlib.aclosing``) when leaving it early.
    """
    waiting: asyncio.Queue[Any] = asyncio.Queue(most)
    collecting = asyncio.create_task(_collect(stream, waiting))
    try:
        while batch := await _gathered(waiting, collecting):
            yield batch
        await collecting
    finally:
        collecting.cancel()


async def _collect(stream: Any, waiting: asyncio.Queue[Any]) -> None:
    async for event in stream.noack().events():
        await waiting.put(event)


async def _gathered(waiting: asyncio.Queue[Any], collecting: asyncio.Task[None]) -> list[Any]:
    """All that waits, or the next event when it comes; nothing once the collecting is over."""
    if waiting.empty():
        coming = asyncio.create_task(waiting.get())
        try:
            await asyncio.wait({coming, collecting}, return_when=asyncio.FIRST_COMPLETED)
            found = [coming.result()] if coming.done() else []
        finally:
            coming.cancel()
    else:
        found = [waiting.get_nowait()]
    while not waiting.empty() and len(found) < waiting.maxsize:
        found.append(waiting.get_nowait())
    return found
