"""A queue of its own for checking passwords: each takes a core for a moment, and 64 MiB.

However many come at once, other requests find their threads free, and whoever finds the queue full
is told so at once.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from stream_app.errors import RapportError

T = TypeVar("T")
AT_ONCE: Final = 2
WAITING: Final = 16
RETRY_AFTER_SECONDS: Final = 3


class TooBusy(RapportError):
    """The queue is full."""


class SignIns:
    """Runs a few at a time, lets a few wait, and refuses the rest."""

    def __init__(self, at_once: int = AT_ONCE, waiting: int = WAITING) -> None:
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="sign-in")
        self._places = threading.BoundedSemaphore(at_once + waiting)

    async def run(self, call: Callable[[], T]) -> T:
        """The result of ``call``, made in a thread of the queue.

        Raises:
            TooBusy: there is no place.
        """
        if not self._places.acquire(blocking=False):
            raise TooBusy("too many people sign in at this moment; try again in a few seconds")
        future = self._threads.submit(call)
        future.add_done_callback(lambda _: self._places.release())
        return await asyncio.wrap_future(future)
