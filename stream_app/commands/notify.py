"""``rapport notify``: one process that posts alerts to the webhook, until a signal ends it."""

import signal
from contextlib import nullcontext

import structlog

from stream_app import bootstrap
from stream_app.probes import serving
from stream_app.settings import Settings

log = structlog.get_logger(__name__)


def run(settings: Settings) -> None:
    """Deliver until SIGTERM or SIGINT.

    Raises:
        RapportError: there is no webhook, its secret is broken, or the database refuses.
    """
    notifier, target = bootstrap.notifier(settings)
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda *_: notifier.stop())
    log.info("notify.start", target=target)
    probes = (
        serving(settings.health_host, settings.health_port, notifier, notifier.registry)
        if settings.health_port is not None
        else nullcontext()
    )
    with probes:
        notifier.run()
