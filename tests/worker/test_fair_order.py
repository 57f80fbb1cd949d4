"""Sessions take turns; none is lost, reordered or left behind a position."""

import random
import shutil
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from faust.types import TP
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from stream_app.contracts.events import peek_session_id
from stream_app.core.pipeline.pipeline import Received, Source, receive
from stream_app.store.database import tables
from stream_app.store.stream.log_positions import stored_offsets
from stream_app.store.stream.repository import Store
from stream_app.worker.batches.processor import BatchProcessor
from stream_app.worker.kafka.adaptive_batching import BATCHES_AHEAD
from stream_app.worker.kafka.fair_order import FairLine
from stream_app.worker.kafka.offsets import OffsetTracker
from tests.chaos import traffic
from tests.store.batches import consent, end, outcome, turn
from tests.store.reading import rows
from tests.worker.processors import processor

Open = Callable[..., Store]
Event = tuple[int, str, int]
"""Partition, session, number."""

EVENTS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abcdefg")), max_size=120)


def line_of(events: Sequence[Event]) -> FairLine[Event]:
    line = FairLine[Event]()
    for event in events:
        line.add(*event[:2], event)
    return line


def burst(session: str, count: int, first: int = 0) -> list[Event]:
    return [(0, session, number) for number in range(first, first + count)]


@given(events=EVENTS, most=st.integers(1, 12), arriving=st.lists(st.integers(0, 30), max_size=40))
def test_no_event_is_lost_and_sessions_keep_their_order(
    events: list[tuple[int, str]], most: int, arriving: list[int]
) -> None:
    log = [(*place, number) for number, place in enumerate(events)]
    waiting, line, found = deque(log), FairLine[Event](), list[Event]()
    for count in [*arriving, len(log)]:
        for _ in range(min(count, len(waiting))):
            event = waiting.popleft()
            line.add(*event[:2], event)
        batch = line.take(most)
        assert batch == sorted(batch, key=log.index), "a selection of the log, in its order"
        assert len(batch) <= most
        found += batch
    while batch := line.take(most):
        found += batch
    assert sorted(found, key=log.index) == log
    for place in set(events):
        own = [event for event in found if event[:2] == place]
        assert own == [event for event in log if event[:2] == place]


@given(events=EVENTS, most=st.integers(1, 12))
def test_each_waiting_session_is_served_in_a_batch_that_has_room_for_all(
    events: list[tuple[int, str]], most: int
) -> None:
    log = [(*place, number) for number, place in enumerate(events)]
    line, left = line_of(log), list(log)
    while left:
        batch = line.take(most)
        waiting = {event[:2] for event in left}
        if len(waiting) <= most:
            assert {event[:2] for event in batch} == waiting
        left = [event for event in left if event not in batch]


def test_more_sessions_than_a_batch_takes_are_served_in_turn() -> None:
    """One place of a batch is that of the oldest event; the others go round."""
    log = [(0, f"s{number}", turn) for turn in range(50) for number in range(40)]
    line = line_of(sorted(log, key=lambda event: event[1]))
    served = {event[1] for _ in range(5) for event in line.take(10)}
    assert len(served) == 40


@given(events=EVENTS, most=st.integers(1, 12))
def test_each_batch_moves_the_position_of_its_partitions_past_no_waiting_event(
    events: list[tuple[int, str]], most: int
) -> None:
    log = [(*place, number) for number, place in enumerate(events)]
    line, left = line_of(log), list(log)
    offsets = OffsetTracker()
    offsets.on_seek({TP("t", partition): None for partition in range(3)})
    for partition, _, number in log:
        offsets.record_fetch(TP("t", partition), number)
        offsets.admit(TP("t", partition), number)
    stored = dict.fromkeys(range(3), 0)
    while batch := line.take(most):
        reached = dict[int, int]()
        for event in batch:
            left.remove(event)
            reached[event[0]] = offsets.begin(TP("t", event[0]), event[2])
            oldest = min((number for p, _, number in left if p == event[0]), default=len(log))
            assert reached[event[0]] <= oldest, "also when the batch is split behind the event"
        for partition, position in reached.items():
            assert position > stored[partition], "a database without the batch is behind"
            stored[partition] = position
    for partition in {event[0] for event in log}:
        assert stored[partition] == 1 + max(number for p, _, number in log if p == partition)


def test_a_quiet_session_behind_a_noisy_one_is_in_the_next_batch() -> None:
    line = line_of([*burst("noisy", 2000), (0, "quiet", 2000)])
    assert (0, "quiet", 2000) in line.take(256)
    line.add(0, "quiet", (0, "quiet", 2001))
    assert (0, "quiet", 2001) in line.take(256)
    assert len(line) == 2002 - 2 * 256


def test_reach_is_counted_from_the_oldest_waiting_event() -> None:
    line = line_of([*burst("noisy", 3), *burst("quiet", 1, 3)])
    assert (line.reach, len(line)) == (4, 4)
    assert line.take(2) == [(0, "noisy", 0), (0, "quiet", 3)]
    assert (line.reach, len(line)) == (3, 2)
    assert line.clear() == burst("noisy", 2, 1)
    assert (line.reach, len(line)) == (0, 0)


class Worker:
    """A worker that takes a log in fair batches, and can crash between any two of them."""

    def __init__(self, store: Store, log: list[bytes], most: int) -> None:
        self.store, self.log, self.most = store, log, most
        self.repeated = 0
        self.done = set[int]()
        self.crash()

    def crash(self) -> None:
        """Forget everything but the database, and begin at its position."""
        self.processor: BatchProcessor = processor(self.store)
        place = ("t", 0)
        start = stored_offsets(self.store, "rapport", ["t"]).get(place, 0)
        self.repeated += len([offset for offset in self.done if offset >= start])
        self.line = FairLine[int]()
        self.offsets = OffsetTracker()
        self.offsets.on_seek({TP(*place): start})
        self.next = start

    def step(self) -> bool:
        """Admit events up to the bound, and handle a batch; False at the end."""
        while self.next < len(self.log) and self.line.reach < BATCHES_AHEAD * self.most:
            self.offsets.record_fetch(TP("t", 0), self.next)
            assert self.offsets.admit(TP("t", 0), self.next) == 0
            self.line.add(0, peek_session_id(self.log[self.next]), self.next)
            self.next += 1
        batch = [self._record(offset) for offset in self.line.take(self.most)]
        if batch:
            self.processor.handle_bisecting(self.processor.prepare(batch))
            self.done |= {record.source.offset for record in batch}
        return bool(batch)

    def _record(self, offset: int) -> Received:
        record = receive(Source("t", 0, offset), self.log[offset])
        return structs.replace(record, done_to=self.offsets.begin(TP("t", 0), offset))


def mixed_log(seed: int) -> list[bytes]:
    """Many sessions with the disorder of real logs, one of which is noisy, and every event."""
    chance = random.Random(seed)
    log = [sent.value for sent in traffic.log(seed, 8, 120)]
    own = [
        turn(0, session_id="consents", consent=None),
        consent("given", session_id="consents"),
        turn(1, session_id="consents", consent=None),
        outcome(session_id="consents"),
        consent("withdrawn", session_id="consents", occurred_at="2026-01-05T13:00:00Z"),
        turn(2, session_id="consents", consent=None),
        outcome(session_id="consents", value=2.0),
        end(session_id="ends-early"),
        *[turn(seq, session_id="ends-early") for seq in range(5)],
        end(session_id="ends-early", occurred_at="2026-01-05T10:30:00Z"),
        turn(6, session_id="ends-early", occurred_at="2026-01-05T12:30:00Z"),
        turn(5, session_id="ends-early"),
    ]
    places = sorted(chance.sample(range(len(log)), len(own)))
    for place, event in reversed(list(zip(places, own, strict=True))):
        log.insert(place, event)
    noisy = [turn(seq, session_id="noisy") for seq in range(100)]
    middle = len(log) // 3
    return [*log[:middle], *noisy, *log[middle:]]


TABLES = [
    tables.turns,
    tables.turn_scores,
    tables.session_scores,
    tables.alerts,
    tables.outcomes,
    tables.consents,
    tables.sessions,
]


def contents(store: Store) -> dict[str, list[Any]]:
    """What is stored, without the times of storing."""
    found = {}
    for table in TABLES:
        kept = [
            {name: value for name, value in row.items() if name not in ("stored_at", "id")}
            for row in rows(store, table)
        ]
        found[table.name] = sorted(map(repr, kept))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_crashes_in_fair_order_change_no_row(
    open_prepared: Open, tmp_path: Path, seed: int
) -> None:
    log = mixed_log(seed)
    chance = random.Random(seed)
    plain = open_prepared("plain")
    for name in (".db", ".db.master-key", ".db.pseudonym-key"):  # equal keys, equal pseudonyms
        shutil.copy(tmp_path / f"plain{name}", tmp_path / f"fair{name}")
    in_order = processor(plain)
    for first in range(0, len(log), 16):
        some = enumerate(log[first : first + 16], first)
        batch = [receive(Source("t", 0, offset), value) for offset, value in some]
        in_order.handle_bisecting(in_order.prepare(batch))
    worker = Worker(open_prepared("fair"), log, 16)
    for _ in range(len(log)):
        more = worker.step()
        if chance.random() < 0.3:
            worker.crash()
        elif not more:
            break
    assert worker.repeated, "stored events beyond the position were read again"
    assert stored_offsets(worker.store, "rapport", ["t"]) == {("t", 0): len(log)}
    assert contents(worker.store) == contents(plain)
