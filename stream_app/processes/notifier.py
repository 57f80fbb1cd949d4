"""Sends alerts to all notification targets until a signal stops it."""

import gc
import signal
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import structlog
from msgspec import Struct

from stream_app.bootstrap import notifier_process
from stream_app.errors import RapportError
from stream_app.health_server import serve_probes
from stream_app.notifications.notification import DeliveryFailed, trial_notification
from stream_app.notifications.rota import LOOK_AHEAD, Rota
from stream_app.notifications.targets import Target
from stream_app.settings import Settings

log = structlog.get_logger(__name__)


class RotaCheck(Struct, frozen=True):
    """A rota over the next four weeks, in words; ``gaps``: when nobody is on call."""

    name: str
    on_call: str | None
    gaps: list[str]
    overlaps: list[str]


def run(settings: Settings, started: float) -> None:
    """Deliver until SIGTERM or SIGINT.

    ``started``: when the process was started, by the monotonic clock.

    Raises:
        RapportError: there is no target, the file of targets is invalid, or the database fails.
    """
    group = notifier_process.notifier_group(settings, started)
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda *_: group.stop())
    log.info("notify.start", targets=group.names)
    gc.collect()
    gc.freeze()
    gc.enable()
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
    for target in chosen(settings, name):
        try:
            notifier_process.channel(settings, target).send(
                trial_notification(target.name, datetime.now(UTC))
            )
        except DeliveryFailed as problem:
            yield target.name, str(problem)
        else:
            yield target.name, None


def chosen(settings: Settings, name: str | None) -> list[Target]:
    """One target, or all.

    Raises:
        RapportError: there is no such target, or the file of targets is invalid.
    """
    targets = notifier_process.notification_plan(settings).targets
    found = [target for target in targets if name in {None, target.name}]
    if not found:
        known = ", ".join(target.name for target in targets) or "none: set RAPPORT_NOTIFICATIONS"
        raise RapportError(f"there is no such target; known are {known}")
    return found


def check(settings: Settings, now: datetime) -> list[RotaCheck]:
    """Check the file, and look for times without anybody on call.

    Raises:
        RapportError: the file is not valid.
    """
    rotas = notifier_process.notification_plan(settings).escalation.rotas.values()
    return [_check_rota(rota, now) for rota in rotas]


def _check_rota(rota: Rota, now: datetime) -> RotaCheck:
    until = now + LOOK_AHEAD
    return RotaCheck(
        rota.name,
        rota.on_call(now),
        [_between(begin, end, rota.zone) for begin, end in rota.gaps(now, until)],
        [
            f"{_between(each.begin, each.end, rota.zone)}: {each.first} and {each.second}; "
            f"{each.first} is on call"
            for each in rota.overlaps(now, until)
        ],
    )


def _between(begin: datetime, end: datetime, zone: ZoneInfo) -> str:
    one, other = (f"{moment.astimezone(zone):%a %Y-%m-%d %H:%M %Z}" for moment in (begin, end))
    return f"{one} to {other}"
