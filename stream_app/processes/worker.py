"""Runs one member of the consumer group until a signal stops it."""

import asyncio
import gc
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import structlog
import uvloop

from stream_app import bootstrap
from stream_app.bootstrap import worker_process
from stream_app.errors import BrokerUnavailable
from stream_app.health_server import serve_probes
from stream_app.processes.traced import traced
from stream_app.settings import Settings
from stream_app.tracing.port import Tracing
from stream_app.worker.kafka.app import RapportWorker
from stream_app.worker.kafka.refusal import refusal
from stream_app.worker.kafka.topics import declare_topics
from stream_app.worker.upkeep.health import Health, Watchdog

log = structlog.get_logger(__name__)

HUNG_EXIT_STATUS = 70
"""Exit status of a worker that was ended by its watchdog."""
GC_THRESHOLD = 50_000
"""Allocations between two garbage collections; batches create hardly any reference cycles."""
SWITCH_INTERVAL = 0.0005
"""Seconds that a thread may hold the GIL while another one waits.

The encoding thread needs the GIL every few milliseconds; with Python's default of 0.005 it would
wait that long each time for the thread that scores and stores.
"""
UNHEALTHY_FOR = 2.0
"""Seconds between ``/healthz`` failing and the exit, so that a health probe can read why."""


def run(settings: Settings, shadow: Path | None = None) -> None:
    """Consume until SIGTERM or SIGINT, then finish the batch in progress.

    ``shadow``: folder of a bundle that scores in silence beside the one in force.

    Raises:
        RapportError: bundle, broker or database cannot be used at start.
        SystemExit: with status 1 after a crash, so that a supervisor restarts the worker.
    """
    with traced(settings, "rapport-worker") as tracing:
        _run(settings, tracing, shadow)


def _run(settings: Settings, tracing: Tracing, shadow: Path | None) -> None:
    scorer = bootstrap.scorer(settings)
    tried = bootstrap.shadow_scorer(settings, shadow, scorer) if shadow is not None else None
    log.info(
        "worker.bundle",
        bundle=scorer.bundle_id,
        provider=scorer.provider.value,
        asked=settings.provider.value,
    )
    if tried is not None:
        log.info(
            "worker.shadow",
            bundle=tried.bundle_id,
            own_encoding=tried.encoder is not scorer.encoder,
        )
    if settings.topic_partitions:
        asyncio.run(declare_topics(settings))
    elif (found := asyncio.run(refusal(settings))) and found.certain:
        raise BrokerUnavailable(found.reason)
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    app, agent = worker_process.worker(settings, scorer, tracing, tried)
    log.info("worker.start", group=settings.kafka_group, topic=settings.turns_topic)
    worker = RapportWorker(
        app, loop=loop, loglevel=None, override_logging=False, redirect_stdouts=False, quiet=True
    )
    probes = (
        serve_probes(
            settings.health_host, settings.health_port, agent.health, agent.metrics.registry
        )
        if settings.health_port is not None
        else nullcontext()
    )
    freeze_garbage_collector()
    sys.setswitchinterval(SWITCH_INTERVAL)
    with probes, _watched(agent.health):
        worker.execute_from_commandline()


def freeze_garbage_collector() -> None:
    """Exempt the objects loaded so far from garbage collection: they live until the exit."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(GC_THRESHOLD)


@contextmanager
def _watched(health: Health) -> Iterator[None]:
    """End the process if the worker is not alive: it would hang forever."""
    watchdog = Watchdog(health, _give_up)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.stop()


def _give_up(reasons: list[str]) -> None:
    log.critical("worker.hung", reasons=reasons)
    time.sleep(UNHEALTHY_FOR)
    os._exit(HUNG_EXIT_STATUS)
