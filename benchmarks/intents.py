"""``python -m benchmarks.intents``: what intents cost, as a ratio of throughputs in one run.

The sample sessions are decoded, encoded and scored by the worker's own pipeline, without broker and
database, whose share would only make the ratio smaller. Rounds without and with intents alternate,
so that drifts in machine load cancel out.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec import structs

from stream_app import bootstrap, logs
from stream_app.commands.event_files import sample_events, sample_sessions
from stream_app.contracts.events import Role
from stream_app.core.intents import Hits, Intent, IntentReader, IntentSet, NoIntentReader
from stream_app.core.pipeline import Pipeline, Received, Source, receive
from stream_app.core.session_state import Versioned
from stream_app.inference import bundle as bundles
from stream_app.inference import intents
from stream_app.settings import LogFormat, Settings

BATCH: Final = 256


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.intents", description="Measure the cost of intents."
    )
    parser.add_argument("--intents", type=int, nargs="+", default=[40], help="default: 40")
    parser.add_argument("--rounds", type=int, default=15, help="default: 15")
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
    timed(pipeline, readers[0], batches)  # warm
    seconds: dict[int, list[float]] = {count: [] for count in readers}
    for place in range(given.rounds):
        order = list(readers) if place % 2 else list(reversed(readers))
        for count in order:
            seconds[count].append(timed(pipeline, readers[count], batches))
    print(f"{scorer.bundle_id}, {given.rounds} rounds of {turns} events")
    for count in given.intents:
        pairs = zip(seconds[count], seconds[0], strict=True)
        ratios = sorted(own / base - 1 for own, base in pairs)
        median = statistics.median(ratios)
        spread = f"{100 * ratios[0]:+.1f} to {100 * ratios[-1]:+.1f} %"
        own = alone(readers[count], pipeline, batches)
        share = own / (statistics.median(seconds[0]) / turns)
        print(
            f"{count} intents: time {100 * median:+.2f} % (median of the rounds; {spread}); "
            f"the comparison alone takes {1e6 * own:.1f} µs a turn, {100 * share:.2f} % of the time"
        )


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
    shipped = [i for name in intents.shipped() for i in intents.load(Path(name)).intents]
    chosen: list[Intent] = [
        structs.replace(shipped[place % len(shipped)], name=f"i{place}") for place in range(count)
    ]
    return IntentSet(tuple(chosen), "benchmark")


def timed(pipeline: Pipeline, reader: IntentReader, batches: Sequence[Sequence[Received]]) -> float:
    """Seconds to process all batches as new sessions."""
    pipeline.encodings.intent_reader = reader
    states: dict[str, Versioned] = {}
    start = time.perf_counter()
    for batch in batches:
        pipeline.process(list(batch), states)
    return time.perf_counter() - start


def alone(reader: IntentReader, pipeline: Pipeline, batches: Sequence[Sequence[Received]]) -> float:
    """Seconds a turn that the comparison itself takes, in the same batches."""
    pipeline.encodings.intent_reader = reader
    calls: list[float] = []

    class Timed:
        intents = reader.intents

        def hits(self, vectors: Sequence[bytes], roles: Sequence[Role]) -> list[Hits]:
            start = time.perf_counter()
            found = reader.hits(vectors, roles)
            calls.append((time.perf_counter() - start) / max(1, len(vectors)))
            return found

    timed(pipeline, Timed(), batches)
    return statistics.median(calls)


if __name__ == "__main__":
    main()
