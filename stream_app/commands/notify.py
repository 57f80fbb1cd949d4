"""``rapport notify``: sends alerts to all notification targets until a signal stops it."""

import signal
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime

import structlog

from stream_app import bootstrap
from stream_app.errors import RapportError
from stream_app.health_server import serve_probes
from stream_app.notifications.notification import DeliveryFailed, trial_notification
from stream_app.settings import Settings

log = structlog.get_logger(__name__)


def run(settings: Settings) -> None:
    """Deliver until SIGTERM or SIGINT.

    Raises:
        RapportError: there is no target, the file of targets is invalid, or the database fails.
    """
    group = bootstrap.notifier_group(settings)
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda *_: group.stop())
    log.info("notify.start", targets=group.targets)
    probes = (
        serve_probes(settings.health_host, settings.health_port, group, group.registry)
        if settings.health_port is not None
        else nullcontext()
    )
    with probes:
        group.run()


def test(settings: Settings, name: str | None) -> Iterator[tuple[str, str | None]]:
    """Send a test message to one or all targets; yield the target's name and problem, if any.

    Raises:
        RapportError: there is no such target, or the file of targets is invalid.
    """
    targets = bootstrap.notification_targets(settings)
    chosen = [target for target in targets if name in {None, target.name}]
    if not chosen:
        known = ", ".join(target.name for target in targets) or "none: set RAPPORT_NOTIFICATIONS"
        raise RapportError(f"there is no such target; known are {known}")
    for target in chosen:
        try:
            bootstrap.channel(settings, target).send(
                trial_notification(target.name, datetime.now(UTC))
            )
        except DeliveryFailed as problem:
            yield target.name, str(problem)
        else:
            yield target.name, None
