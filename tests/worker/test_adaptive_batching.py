"""Batches of pending events: in order, without loss, duplicates or waiting."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.worker.adaptive_batching import batches

SOON = 30.0


class FakeStream:
    """Replaces Faust's stream: yields events, and lets other tasks run as configured."""

    def __init__(
        self,
        pauses: Sequence[int],
        problem: Exception | None = None,
        stays_away_after: int | None = None,
    ) -> None:
        self.pauses = pauses
        self.problem = problem
        self.stays_away_after = stays_away_after
        self.handed_out = 0
        self.acknowledging = True

    def noack(self) -> "FakeStream":
        self.acknowledging = False
        return self

    async def events(self) -> AsyncIterator[int]:
        assert not self.acknowledging
        for number, pause in enumerate(self.pauses):
            for _ in range(pause):
                await asyncio.sleep(0)
            if number == self.stays_away_after:
                await asyncio.Event().wait()
            self.handed_out += 1
            yield number
        if self.problem is not None:
            raise self.problem


@given(
    pauses=st.lists(st.integers(0, 6), max_size=40),
    work=st.lists(st.integers(0, 6), max_size=40),
    most=st.integers(1, 7),
)
def test_every_event_is_delivered_once_in_order(
    pauses: list[int], work: list[int], most: int
) -> None:
    async def found() -> list[list[int]]:
        taken = []
        async with aclosing(batches(FakeStream(pauses), most)) as coming:
            async for batch in coming:
                taken.append(batch)
                for _ in range(work[len(taken)] if len(taken) < len(work) else 0):
                    await asyncio.sleep(0)
        return taken

    taken = asyncio.run(found())
    assert [number for batch in taken for number in batch] == list(range(len(pauses)))
    assert all(1 <= len(batch) <= most for batch in taken)


async def test_a_single_event_is_delivered_immediately() -> None:
    stream = FakeStream([0, 0], stays_away_after=1)
    async with aclosing(batches(stream, 10)) as coming, asyncio.timeout(SOON):
        assert await anext(coming) == [0]


async def test_events_arriving_during_a_batch_form_the_next_one() -> None:
    stream = FakeStream([0] * 9)
    async with aclosing(batches(stream, 4)) as coming:
        sizes = []
        async for batch in coming:
            sizes.append(len(batch))
            for _ in range(20):
                await asyncio.sleep(0)
            assert stream.handed_out <= sum(sizes) + 4 + 1, "at most one batch is buffered"
    assert sum(sizes) == 9
    assert sizes[1] == 4


async def test_a_broken_stream_raises_after_its_last_event() -> None:
    taken = []

    async def take() -> None:
        async with aclosing(batches(FakeStream([0, 0, 3], RuntimeError("broken")), 2)) as coming:
            async for batch in coming:
                taken.extend(batch)

    with pytest.raises(RuntimeError, match="broken"):
        await take()
    assert taken == [0, 1, 2]


async def test_closing_early_leaves_no_task_running() -> None:
    before = asyncio.all_tasks()
    async with aclosing(batches(FakeStream([0] * 5), 1)) as coming:
        assert await anext(coming) == [0]
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
