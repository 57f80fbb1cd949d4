"""Builds the notifier process and the channels to its targets."""

import os
import time
from datetime import UTC, datetime

from stream_app import bootstrap
from stream_app.errors import RapportError
from stream_app.notifications.apprise_channel import AppriseChannel
from stream_app.notifications.connection_guard import parse_allowed
from stream_app.notifications.escalation import Escalation
from stream_app.notifications.escalation_planner import EscalationPlanner
from stream_app.notifications.escalation_sender import EscalationSender
from stream_app.notifications.notification import Channel
from stream_app.notifications.notifier import Notifier
from stream_app.notifications.notifier_group import NotifierGroup, deliveries_counter
from stream_app.notifications.rounds import Rounds
from stream_app.notifications.targets import Plan, Target, read_plan
from stream_app.notifications.webhook import Webhook
from stream_app.settings import Settings
from stream_app.store.alerts.deliveries import Deliveries
from stream_app.store.alerts.escalations import Escalations

EVERY = 1.0
"""Seconds between two looks for alerts."""
LONGEST_WAIT = 300.0
"""Seconds between two tries of a target that cannot be reached, at most."""


def notification_plan(settings: Settings) -> Plan:
    """Targets, rotas and escalation of the configured file; empty without one.

    Raises:
        RapportError: the file is not valid; the message has the line.
    """
    if settings.notifications is None:
        return Plan([], Escalation((), {}, frozenset()))
    return read_plan(settings.notifications, os.environ)


def channel(settings: Settings, target: Target) -> Channel:
    """Create the channel to a target."""
    url, external = target.url.get_secret_value(), settings.external_url
    allowed = parse_allowed(target.allow)
    if target.kind == "apprise":
        return AppriseChannel(target.name, url, external, target.timeout, allowed)
    secret = target.secret.get_secret_value() if target.secret else None
    return Webhook(target.name, url, secret, external, target.timeout, allowed)


def notifier_group(settings: Settings, started: float) -> NotifierGroup:
    """Create the notifiers of all targets, and of the escalation if the file has one.

    ``started``: when the process was started, by the monotonic clock.

    Raises:
        RapportError: there is no target, or the file is not valid.
    """
    plan = notification_plan(settings)
    if not plan.targets:
        raise RapportError(
            "RAPPORT_NOTIFICATIONS is not set: it must name a file of notification targets "
            "(docs/notifications.md)"
        )
    reached = plan.escalation.reached
    opened = bootstrap.store(settings, connections=2 * (len(plan.targets) + len(reached) + 1))
    counter = deliveries_counter()

    def now() -> datetime:
        return datetime.now(UTC)

    def running() -> float:
        return time.monotonic() - started

    notifiers: list[Rounds] = [
        Notifier(
            target,
            Deliveries(opened, target.name),
            channel(settings, target),
            counter,
            now,
            EVERY,
            LONGEST_WAIT,
            running,
        )
        for target in plan.targets
        if not target.escalation_only
    ]
    if plan.escalation.paths:
        steps = Escalations(opened)
        notifiers.append(
            EscalationPlanner(plan.escalation, steps, counter, now, EVERY, LONGEST_WAIT)
        )
        notifiers += [
            EscalationSender(
                target.name, steps, channel(settings, target), counter, now, EVERY, LONGEST_WAIT
            )
            for target in plan.targets
            if target.name in reached
        ]
    return NotifierGroup(notifiers, counter)
