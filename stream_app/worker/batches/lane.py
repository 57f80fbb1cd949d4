"""Runs batches and the work of timers one by one: commit, publish, delete the outbox row.

Both change sessions, so only one of them is under way at a time.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from stream_app.core.pipeline.pipeline import Received
from stream_app.core.session.batch import BatchResult
from stream_app.worker.batches.commits import Committed
from stream_app.worker.batches.processor import BatchProcessor
from stream_app.worker.kafka.publisher import Publisher

T = TypeVar("T")


class Lane:
    """Carries batches and what timers do through the processor to the publisher."""

    def __init__(self, processor: BatchProcessor, publisher: Publisher) -> None:
        self.processor = processor
        self.publisher = publisher
        self.exclusive = asyncio.Lock()
        """Held while sessions are changed and the messages about it published."""
        self.next_waits = False
        """Whether the next batch is prepared while the current one is processed."""
        self.on_commit: Callable[[BatchResult], None] | None = None
        self._stages = processor.stages
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="batch")

    async def process(self, batch: list[Received]) -> None:
        """Commit a batch, in parts if need be, and publish it."""
        async with self.exclusive:
            parts = await self.run(lambda: self.processor.handle_in_parts(batch))
            with self._stages.stage("publish", batch):
                for committed in parts:
                    await self.publish(committed)
        for committed in parts:
            self._note(committed)

    async def process_due(self, timer: str, commit: Callable[[], Committed | None]) -> None:
        """Carry out what a timer does to sessions, if there are any."""
        tracing = self._stages.tracing
        work = tracing.timer(timer)
        async with self.exclusive:
            with work.active():
                committed = await self.run(commit)
                if committed is None:
                    return
                with tracing.stage("publish"):
                    await self.publish(committed)
            work.end()
            self._note(committed)

    async def publish(self, committed: Committed) -> None:
        """Send all messages and wait for the brokers; then delete the outbox row."""
        await self.publisher.publish(committed.messages, committed.result.dead_letters)
        if committed.outbox_id is None:
            return
        outbox = self.processor.outbox
        if self.next_waits:
            outbox.mark_published_later(committed)
        else:
            await self.run(lambda: outbox.mark_published(committed))

    async def run(self, call: Callable[[], T]) -> T:
        """Run a call in the thread of the batches, one at a time."""
        return await run_in(self._thread, call)

    def _note(self, committed: Committed) -> None:
        if self.on_commit is not None:
            self.on_commit(committed.result)


async def run_in(thread: ThreadPoolExecutor, call: Callable[[], T]) -> T:
    """Run a call in a thread, with this task's context: the current span."""
    return await asyncio.get_running_loop().run_in_executor(thread, copy_context().run, call)
