"""Cost, cache hit rate and memory of a worker by number of open sessions."""

from typing import Final

from msgspec import Struct

from benchmarks.load import consumer_group, testbed
from benchmarks.load.rounds import median
from benchmarks.options import Options
from benchmarks.report import markdown, probes
from benchmarks.storage.open_sessions import OpenSessions
from stream_app.worker.batches.session_cache import CACHED_SESSIONS
from stream_app.worker.kafka.broker import free_port

NAME: Final = "sessions"
TITLE: Final = "Open sessions and memory"
COUNTS: Final = (100, 1_000, 10_000, 100_000)
SHORT: Final = 4
"""Tokens of the turns that fill the cache; their rate is not measured."""
TURNS: Final = 2000


class Count(Struct):
    """Turns per second, µs of CPU per turn outside the model, cache hit rate.

    ``memory``: resident MiB after the rounds. ``cached``: states in the worker's memory.
    """

    sessions: int
    rates: list[float]
    overheads: list[float]
    hits: list[float]
    cached: int
    memory: float


class Result(Struct):
    """One worker, SQLite; ``cache``: maximum number of states in memory."""

    cache: int
    counts: list[Count]


def measure(options: Options) -> Result:
    """Fill the cache with one turn per session, then send turns of randomly chosen sessions."""
    counts = []
    with testbed.opened(options.bundle, options.kafka) as bed:
        for sessions in options.size(COUNTS, (20, 200)):
            port = free_port()
            settings = bed.deployment(health_port=port)
            open_now = OpenSessions(settings, "open", sessions)
            found = Count(sessions, [], [], [], 0, 0.0)
            with consumer_group.workers(settings) as workers:
                filling = open_now.each_once(SHORT)
                workers.burst("open", filling[:CACHED_SESSIONS], open_now.first_seq)
                for _ in range(options.rounds):
                    before = _lookups(port)
                    turns = open_now.turns(options.size(TURNS, 60))
                    burst = workers.burst("open", turns, open_now.first_seq)
                    after = _lookups(port)
                    found.rates.append(burst.rate)
                    found.overheads.append(burst.overhead)
                    found.hits.append((after[0] - before[0]) / max(1.0, sum(after) - sum(before)))
                found.memory = workers.memory()
                found.cached = int(probes.metric(port, "rapport_cached_sessions"))
            counts.append(found)
            options.say(
                f"{sessions} open: {median(found.rates):.1f} turns/s, {found.memory:.0f} MiB"
            )
        return Result(CACHED_SESSIONS, counts)


def _lookups(port: int) -> tuple[float, float]:
    """States found in memory so far, and states read from the store."""
    return (
        probes.metric(port, "rapport_cache_hits_total"),
        probes.metric(port, "rapport_cache_misses_total"),
    )


def table(result: Result) -> str:
    """One row per number of sessions."""
    rows = [
        [
            f"{count.sessions:,}",
            f"{median(count.rates):.1f}",
            f"{median(count.overheads):.0f}",
            f"{100 * median(count.hits):.0f} %",
            f"{count.cached:,}",
            f"{count.memory:.0f}",
        ]
        for count in result.counts
    ]
    head = [
        "open sessions",
        "turns/s",
        "µs of CPU a turn, not the model",
        "cache hits",
        "states in memory",
        "memory, MiB",
    ]
    words = f"The cache holds at most {result.cache:,} states."
    return f"{words}\n\n{markdown.table(head, rows)}"
