"""``python -m benchmarks.intents``: what intents cost, as a ratio of CPU times in one run.

The sample sessions are encoded and scored by the worker's own pipeline, without broker and
database, whose time would only make the share smaller. Each batch is processed without and with
intents, in alternating order, so that drifts of the machine cancel out, and CPU time is measured,
so that other processes do not count.
"""

import argparse
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import structs

from stream_app import bootstrap, logs
from stream_app.contracts.events import Role
from stream_app.core.measures.intents import Hits, Intent, IntentReader, IntentSet, NoIntentReader
from stream_app.core.pipeline.pipeline import Pipeline, Received, Source, receive
from stream_app.core.session.session_state import Versioned
from stream_app.inference import intent_files, intents
from stream_app.inference.bundles import bundle as bundles
from stream_app.recordings.event_files import sample_events, sample_sessions
from stream_app.settings import LogFormat, Settings

BATCH: Final = 64


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.intents", description="Measure the cost of intents."
    )
    parser.add_argument("--intents", type=int, nargs="+", default=[40], help="default: 40")
    parser.add_argument("--rounds", type=int, default=20, help="default: 20")
    parser.add_argument("--bundle", type=bundles.find, default=bundles.DEFAULT_BUNDLE)
    given = parser.parse_args()
    logs.configure("ERROR", LogFormat.CONSOLE)
    settings = Settings(bundle=given.bundle, intents=None, require_consent=False)
    scorer = bootstrap.scorer(settings)
    pipeline = bootstrap.pipeline(settings, scorer)
    batches = records()
    turns = sum(len(batch) for batch in batches)
    readers: dict[int, IntentReader] = {0: NoIntentReader()}
    for count in given.intents:
        readers[count] = intents.compare(numbered(count), scorer)
    ratios: dict[int, list[float]] = {count: [] for count in given.intents}
    alone: dict[int, Clocked] = {count: Clocked(readers[count]) for count in given.intents}
    base = 0.0
    for place in range(given.rounds + 1):
        states: dict[int, dict[str, Versioned]] = {count: {} for count in readers}
        for number, batch in enumerate(batches):
            order = list(readers) if (place + number) % 2 else list(reversed(readers))
            seconds = {
                count: timed(pipeline, readers[count], batch, states[count]) for count in order
            }
            if place:  # the first round warms up
                base += seconds[0]
                for count in given.intents:
                    ratios[count].append(seconds[count] / seconds[0] - 1)
    for count in given.intents:
        fresh: dict[str, Versioned] = {}
        for batch in batches:
            timed(pipeline, alone[count], batch, fresh)
    per_turn = base / given.rounds / turns
    print(f"{scorer.bundle_id}: {turns} turns in batches of {BATCH}, {given.rounds} rounds")
    for count in given.intents:
        median, low, high = median_with_interval(ratios[count])
        own = alone[count].seconds / turns
        print(
            f"{count} intents: CPU time {100 * median:+.2f} % ({100 * low:+.2f} to "
            f"{100 * high:+.2f}; median of {len(ratios[count])} batches); the comparison alone "
            f"takes {1e6 * own:.1f} µs a turn, {100 * own / per_turn:.2f} % of the time"
        )


class Clocked:
    """A reader that counts the CPU time of its comparisons."""

    def __init__(self, reader: IntentReader) -> None:
        self._reader = reader
        self.intents = reader.intents
        self.seconds = 0.0

    def hits(self, vectors: Sequence[bytes], roles: Sequence[Role]) -> list[Hits]:
        """The reader's hits."""
        start = time.process_time()
        found = self._reader.hits(vectors, roles)
        self.seconds += time.process_time() - start
        return found


def median_with_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The median with its 95 % interval from resampled values."""
    chance = np.random.default_rng(17)
    drawn = np.median(chance.choice(values, (2000, len(values))), axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975]).tolist()
    return float(np.median(values)), low, high


def records() -> list[list[Received]]:
    """The sample sessions' events, as batches of the log."""
    found: list[bytes] = []
    now = datetime.now(UTC)
    for path in sample_sessions():
        if not path.stem.startswith("broken"):
            events = sample_events(path, f"intents-{path.stem}", now, 1.0)
            found += [event.value for event in events]
    log = [receive(Source("t", 0, place), raw) for place, raw in enumerate(found)]
    return [log[start : start + BATCH] for start in range(0, len(log), BATCH)]


def numbered(count: int) -> IntentSet:
    """So many different intents, made of the shipped ones."""
    shipped = [i for name in intent_files.shipped() for i in intent_files.load(Path(name)).intents]
    chosen: list[Intent] = [
        structs.replace(shipped[place % len(shipped)], name=f"i{place}") for place in range(count)
    ]
    return IntentSet(tuple(chosen), "benchmark")


def timed(
    pipeline: Pipeline,
    reader: IntentReader,
    batch: Sequence[Received],
    states: dict[str, Versioned],
) -> float:
    """Seconds of CPU to process a batch."""
    pipeline.encodings.intent_reader = reader
    start = time.process_time()
    pipeline.process(list(batch), states)
    return time.process_time() - start


if __name__ == "__main__":
    main()
