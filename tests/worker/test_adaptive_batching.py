"""Batches of pending events: in order, without loss, duplicates or waiting."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.worker.kafka.adaptive_batching import BATCHES_AHEAD, Admit, Batching

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


def taking(stream: FakeStream, most: int) -> AsyncGenerator[list[int], None]:
    """Batches of a stream whose events are of one session."""
    return Batching(most).batches(stream, lambda _: (0, "s"))


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
        async with aclosing(taking(FakeStream(pauses), most)) as coming:
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
    async with aclosing(taking(stream, 10)) as coming, asyncio.timeout(SOON):
        assert await anext(coming) == [0]


async def test_events_arriving_during_a_batch_form_the_next_one() -> None:
    stream = FakeStream([0] * 9)
    async with aclosing(taking(stream, 4)) as coming:
        sizes = []
        async for batch in coming:
            sizes.append(len(batch))
            for _ in range(20):
                await asyncio.sleep(0)
    assert sum(sizes) == 9
    assert sizes[1] == 4


async def test_a_broken_stream_raises_after_its_last_event() -> None:
    taken = []

    async def take() -> None:
        async with aclosing(taking(FakeStream([0, 0, 3], RuntimeError("broken")), 2)) as coming:
            async for batch in coming:
                taken.extend(batch)

    with pytest.raises(RuntimeError, match="broken"):
        await take()
    assert taken == [0, 1, 2]


async def test_closing_early_leaves_no_task_running() -> None:
    before = asyncio.all_tasks()
    async with aclosing(taking(FakeStream([0] * 5), 1)) as coming:
        assert await anext(coming) == [0]
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


def sessions_of(names: str) -> Admit:
    """Give the events to sessions of one partition, by their numbers."""
    return lambda number: (0, names[number])


async def test_a_quiet_session_is_in_one_of_the_two_batches_after_its_arrival() -> None:
    stream = FakeStream([0] * 2001)
    batching = Batching(256)
    admit = sessions_of("n" * 2000 + "q")
    async with aclosing(batching.batches(stream, admit)) as coming:
        after_arrival = []
        async for batch in coming:
            after_arrival += [batch] if stream.handed_out > 2000 else []
            for _ in range(5000):  # as long as a batch is processed, events arrive
                await asyncio.sleep(0)
    assert 2000 in {*after_arrival[0], *after_arrival[1]}
    assert len(after_arrival) > 5


async def test_an_event_is_overtaken_by_a_bounded_part_of_the_log() -> None:
    """Otherwise a crash would read without bound again what is stored beyond the position."""
    stream = FakeStream([0] * 3000)
    admit = sessions_of("n" * 100 + "".join(chr(1000 + n % 40) for n in range(2900)))
    seen = set[int]()
    async with aclosing(Batching(8).batches(stream, admit)) as coming:
        async for batch in coming:
            seen |= set(batch)
            oldest = next(n for n in range(3001) if n not in seen)
            assert max(seen) - oldest < 8 * BATCHES_AHEAD
            assert stream.handed_out <= oldest + 8 * BATCHES_AHEAD + 8
            for _ in range(20):
                await asyncio.sleep(0)
    assert len(seen) == 3000


async def test_events_in_no_batch_can_be_left_to_another_worker() -> None:
    stream = FakeStream([0] * 400)
    batching = Batching(4)
    async with aclosing(batching.batches(stream, sessions_of("s" * 400))) as coming:
        first = await anext(coming)
        for _ in range(2000):
            await asyncio.sleep(0)
        left = batching.leave()
        assert left == list(range(len(first), len(first) + len(left)))
        assert len(left) == 4 * BATCHES_AHEAD
        following = await anext(coming)
    assert following[0] == first[-1] + len(left) + 1, "and the stream goes on"
