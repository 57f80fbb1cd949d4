"""``rapport worker``: one process of the consumer group, until a signal ends it."""

import asyncio

import faust
import structlog
import uvloop

from stream_app import bootstrap
from stream_app.settings import Settings
from stream_app.worker.topics import declare_topics

log = structlog.get_logger(__name__)


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
    app, _ = bootstrap.worker(settings, scorer)
    log.info("worker.start", group=settings.kafka_group, topic=settings.turns_topic)
    worker = faust.Worker(
        app, loop=loop, loglevel=None, override_logging=False, redirect_stdouts=False, quiet=True
    )
    worker.execute_from_commandline()
