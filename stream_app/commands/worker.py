"""``rapport worker``: one process of the consumer group, until a signal ends it."""

import asyncio
import gc
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import faust
import structlog
import uvloop

from stream_app import bootstrap
from stream_app.health_server import serve_probes
from stream_app.settings import Settings
from stream_app.worker.health import Health, Watchdog
from stream_app.worker.topics import declare_topics

log = structlog.get_logger(__name__)

HUNG_EXIT_STATUS = 70
"""Exit status of a worker that its watchdog ended."""
GC_THRESHOLD = 50_000
"""So many are made between two looks for garbage; a batch leaves hardly any that is in a cycle."""
SWITCH_INTERVAL = 0.0005
"""Seconds for which one thread may keep the interpreter from another.

The thread that encodes comes back to Python every few milliseconds, and by Python's own setting of
0.005 it waits that long for whoever scores and stores meanwhile.
"""
UNHEALTHY_FOR = 2.0
"""Seconds between ``/healthz`` turning red and the end: time for a probe to see why."""


def run(settings: Settings) -> None:
    """Consume until SIGTERM or SIGINT; drains the batch in flight.

    Raises:
        RapportError: bundle, broker or database are not usable at start.
        SystemExit: with status 1 after a crash, so that a supervisor starts the worker again.
    """
    scorer = bootstrap.scorer(settings)
    log.info(
        "worker.bundle",
        bundle=scorer.bundle_id,
        provider=scorer.provider.value,
        asked=settings.provider.value,
    )
    if settings.declare_topics:
        asyncio.run(declare_topics(settings))
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    app, agent = bootstrap.worker(settings, scorer)
    log.info("worker.start", group=settings.kafka_group, topic=settings.turns_topic)
    worker = faust.Worker(
        app, loop=loop, loglevel=None, override_logging=False, redirect_stdouts=False, quiet=True
    )
    probes = (
        serve_probes(
            settings.health_host, settings.health_port, agent.health, agent.metrics.registry
        )
        if settings.health_port is not None
        else nullcontext()
    )
    _freeze_garbage_collector()
    sys.setswitchinterval(SWITCH_INTERVAL)
    with probes, _watched(agent.health):
        worker.execute_from_commandline()


def _freeze_garbage_collector() -> None:
    """What is loaded by now stays to the end: it is no garbage to be looked for over and over."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)


@contextmanager
def _watched(health: Health) -> Iterator[None]:
    """End the process when the worker is not alive: it would hang there for good."""
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
