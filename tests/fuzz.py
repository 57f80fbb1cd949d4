"""`python -m tests.fuzz --messages 200000`: mutated events through decoder, pipeline and store.

Every message must be scored, counted or dead-lettered with a reason; nothing may crash, memory must
stay constant, and no error may quote the text.
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from stream_app.contracts.events import MAX_EVENT_BYTES
from stream_app.core.pipeline.pipeline import Received, Source, parts, receive
from stream_app.store.stream import schema
from stream_app.store.stream.repository import open_store
from stream_app.worker.batches.processor import BatchProcessor
from tests.fakes import delete, edit
from tests.store.batches import end, outcome, prepare, turn
from tests.worker.processors import processor

BATCH = 256
SESSIONS = 400
SECRET = "zanzibar"
REVISED_AT = "2026-01-05T12:00:00Z"
JUNK = (
    *(b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"{", b"}", b"[", b"]", b'"'),
    *(b":", b",", b"null", b"true", b"-1", b"1e999", b"9" * 400, b"NaN"),
    *(b"[" * 2000, b'{"a":' * 900),
)


@dataclass
class Outcome:
    """Counts of the messages' outcomes."""

    messages: int = 0
    fates: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    quoted: int = 0
    seconds: float = 0.0
    memory_at_tenth: int = 0
    memory_at_end: int = 0


def messages(count: int, seed: int) -> Iterator[bytes]:
    """Valid events and mutations of them; a third is unchanged."""
    chance = random.Random(seed)
    for number in range(count):
        value = _valid(chance, number)
        if chance.random() < 2 / 3:
            for _ in range(chance.choice((1, 1, 1, 2, 4))):
                value = _mutated(value, chance)
        yield value


def run(count: int, seed: int = 1) -> Outcome:
    """Process all messages in batches with a worker's processor and a real store."""
    result = Outcome()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rapport-fuzz-") as folder:
        store = open_store(f"sqlite:///{Path(folder)}/fuzz.db")
        schema.upgrade(store)
        prepare(store)
        worker = processor(store, retry_for=0.0)
        batch: list[Received] = []
        for offset, value in enumerate(messages(count, seed)):
            source = Source("t", 0, offset)
            batch.append(receive(source, value, {}, datetime.now(UTC)))
            if len(batch) == BATCH or offset == count - 1:
                _take(worker, batch, result)
                batch = []
            if offset == count // 10:
                result.memory_at_tenth = _peak_memory()
        store.close()
    result.messages = count
    result.memory_at_end = _peak_memory()
    result.seconds = time.monotonic() - started
    return result


def _take(worker: BatchProcessor, batch: list[Received], result: Outcome) -> None:
    counts: Counter[str] = Counter()
    for part in parts(worker.prepare(batch)):
        committed = worker.handle(part)
        worker.mark_published(committed)
        counts += committed.result.counts
        for item in committed.result.dead_letters:
            result.reasons[item.letter.reason] += 1
            result.quoted += SECRET in item.letter.detail
    result.fates += counts
    if counts.total() != len(batch):
        message = f"{len(batch)} messages in, {dict(counts)} accounted for"
        raise AssertionError(message)


def _valid(chance: random.Random, number: int) -> bytes:
    session = f"s-{chance.randrange(SESSIONS)}-{number // 20_000}"
    kind = chance.random()
    if kind < 0.9:
        return turn(
            chance.randrange(40), session_id=session, text=f"{SECRET} {chance.random():.3f}"
        )
    if kind < 0.92:
        return end(session_id=session) if kind < 0.91 else outcome(session_id=session)
    seq = chance.randrange(40)
    if kind < 0.94:
        return delete(session, seq, occurred_at=REVISED_AT)
    return edit(session, seq, text=f"{SECRET} {chance.random():.3f}", occurred_at=REVISED_AT)


def _mutated(value: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(value) + 1)
    other = chance.randrange(len(value) + 1)
    low, high = min(place, other), max(place, other)
    match chance.randrange(8):
        case 0:
            return value[:place]
        case 1:
            return value[:low] + value[high:]
        case 2:
            return value[:place] + chance.choice(JUNK) + value[place:]
        case 3:
            return value[:place] + bytes((chance.randrange(256),)) + value[place + 1 :]
        case 4:
            return value[:low] + value[low:high] * 2 + value[high:]
        case 5:
            return chance.randbytes(chance.randrange(200))
        case 6:
            return value[:low] + chance.choice(JUNK) + value[high:]
        case _ if chance.random() < 0.01:
            return value[:place] + b"z" * (MAX_EVENT_BYTES + 1) + value[place:]
        case _:
            return value + value[low:high]


def _peak_memory() -> int:
    """Peak resident size, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """Run and print the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    result = run(options.messages, options.seed)
    print(f"{result.messages} messages in {result.seconds:.0f} s, none lost, no crash")
    print("became:", dict(result.fates.most_common()))
    print("dead letters:", dict(result.reasons.most_common()))
    print(f"errors that quote the text: {result.quoted}")
    print(
        f"peak memory {result.memory_at_tenth // 1024} MiB after a tenth, "
        f"{result.memory_at_end // 1024} MiB at the end"
    )


if __name__ == "__main__":
    main()
