"""A bounded thread pool for password checks, each of which uses one core and 64 MiB.

Other requests keep their own threads however many people sign in at once. When the queue is full,
further sign-ins are rejected immediately.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from stream_app.errors import RapportError

T = TypeVar("T")
CONCURRENT: Final = 2
MAX_WAITING: Final = 16
RETRY_AFTER_SECONDS: Final = 3


class SignInQueueFull(RapportError):
    """Too many people are signing in at once."""


class SignInQueue:
    """Runs ``concurrent`` calls at a time, queues up to ``max_waiting`` and rejects the rest."""

    def __init__(self, concurrent: int = CONCURRENT, max_waiting: int = MAX_WAITING) -> None:
        self._threads = ThreadPoolExecutor(concurrent, thread_name_prefix="sign-in")
        self._slots = threading.BoundedSemaphore(concurrent + max_waiting)

    async def run(self, call: Callable[[], T]) -> T:
        """Run ``call`` in one of the pool's threads and return its result.

        Raises:
            SignInQueueFull: too many calls are already running or waiting.
        """
        if not self._slots.acquire(blocking=False):
            raise SignInQueueFull("too many people are signing in; try again in a few seconds")
        future = self._threads.submit(call)
        future.add_done_callback(lambda _: self._slots.release())
        return await asyncio.wrap_future(future)
