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

from msgspec import structs

from stream_app.contracts.events import MAX_EVENT_BYTES, Role
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline, Received, Source, parts, receive
from stream_app.core.pipeline.scoring_bundles import BundlesInForce
from stream_app.core.session.environment import Policy
from stream_app.core.session.ports import Encoding
from stream_app.inference.bundles.bundle import DEFAULT_BUNDLE, load
from stream_app.inference.language_detector import TextLanguages
from stream_app.inference.reader import packed_tokens
from stream_app.inference.tokenizer import TextTokenizer
from stream_app.plain_text.copies import spoken
from stream_app.store.stream import schema
from stream_app.store.stream.repository import open_store
from stream_app.worker.batches.processor import BatchProcessor
from tests.fakes import FakeScorer, delete, edit
from tests.rule_texts import EAGER
from tests.store.batches import end, outcome, prepare, turn
from tests.worker.processors import processor

BATCH = 256
SESSIONS = 400
SECRET = "zanzibar"
REVISED_AT = "2026-01-05T12:00:00Z"
TEXTS = (
    "I cannot sleep at night, and nobody asks.",
    "No puedo dormir y todo me da miedo.",
    "не могу спать и всего боюсь",
    "我睡不着,什么都害怕",
    "neend nahi aati aur dar lagta hai",
    "<b>I don&#39;t</b> > sleep\n> ok\nja",
    "! ? ok 😀",
)
"""Of turns in several languages, and of long ones, which repeat them."""
LONGEST_REPEATED = 400
JUNK = (
    *(b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"{", b"}", b"[", b"]", b'"'),
    *(b":", b",", b"null", b"true", b"-1", b"1e999", b"9" * 400, b"NaN"),
    *(b"[" * 2000, b'{"a":' * 900),
)


class InParts(FakeScorer):
    """A fake that encodes each part of a long text, cut as the default bundle's encoder needs."""

    def __init__(self) -> None:
        bundle = load(DEFAULT_BUNDLE)
        file = bundle.file(bundle.manifest.tokenizer.file)
        self._tokenizer = TextTokenizer(file, bundle.manifest.encoder.max_tokens)

    def encode(self, texts: list[str], roles: list[Role] | None = None) -> list[Encoding]:
        read = self._tokenizer.whole([spoken(text).text for text in texts])
        found = []
        for encoding, text in zip(super().encode(texts, roles), read, strict=True):
            words = sum(len(part.ids) - 2 for part in text.parts)
            if words < len(text.words):
                message = f"{len(text.words) - words} tokens are in no part"
                raise AssertionError(message)
            size = len(text.parts)
            parts = encoding.vectors * size if size > 1 else b""
            found.append(structs.replace(encoding, parts=parts, tokens=packed_tokens(text.words)))
        return found


def pipeline() -> Pipeline:
    """A pipeline of an English bundle that reads languages and long turns as the service does."""
    built = Pipeline(InParts(), Policy(WindowPolicy(), EAGER))
    built.adopt(BundlesInForce(structs.replace(built.bundles.default, languages=("en",))))
    built.languages = TextLanguages()
    return built


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
        worker = processor(store, retry_for=0.0, core=pipeline())
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
        worker.outbox.mark_published(committed)
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
        return turn(chance.randrange(40), session_id=session, **_said(chance))
    if kind < 0.92:
        return end(session_id=session) if kind < 0.91 else outcome(session_id=session)
    seq = chance.randrange(40)
    if kind < 0.94:
        return delete(session, seq, occurred_at=REVISED_AT)
    return edit(session, seq, text=f"{SECRET} {chance.random():.3f}", occurred_at=REVISED_AT)


def _said(chance: random.Random) -> dict[str, str]:
    """A text in one of several languages, now and then a long one, with a tag or without."""
    text = f"{SECRET} {chance.random():.3f}"
    if chance.random() < 0.3:
        text = f"{text} {chance.choice(TEXTS)}"
    if chance.random() < 0.02:
        text = " ".join([text, *chance.choices(TEXTS, k=chance.randrange(LONGEST_REPEATED))])
    tags = ("en", "es", "EN_gb", "und", "tlh")
    return {"text": text} | ({"lang": chance.choice(tags)} if chance.random() < 0.1 else {})


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
