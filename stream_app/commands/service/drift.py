"""``rapport drift``: changes of the data or the model, each reported once and acknowledged."""

from datetime import UTC, datetime

import structlog

from stream_app import bootstrap
from stream_app.analytics.questions import drift_watch
from stream_app.bootstrap import notifier_process
from stream_app.commands.events.reading import record_read
from stream_app.commands.service.notify import chosen
from stream_app.notifications.notification import notice
from stream_app.settings import Settings
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.alerts import drift_changes
from stream_app.store.alerts.drift_changes import DriftChange

log = structlog.get_logger(__name__)
RULE = "rapport-drift"


def check(settings: Settings, target: str | None) -> list[str]:
    """Look for changes; the new ones in words.

    ``target``: the notification target that receives them.

    Raises:
        RapportError: there is no such target, or the database or the archive fails.
        DeliveryFailed: the target was not reached; the changes are recorded.
    """
    targets = [] if target is None else chosen(settings, target)
    record_read(settings, AuditAction.READ_STATISTICS, "drift check")
    store = bootstrap.store(settings)
    try:
        new = drift_watch.check(store, datetime.now(UTC), settings.archive)
    finally:
        store.close()
    found = [drift_watch.words(each) for each in new]
    for each, said in zip(new, found, strict=True):
        log.warning("drift.changed", change=each.change_id, words=said)
    for one in targets if new else ():
        message = notice(RULE, "\n".join(found), datetime.now(UTC))
        notifier_process.channel(settings, one).send(message)
    return found


def listed(settings: Settings, *, unacknowledged: bool) -> list[DriftChange]:
    """The changes found so far, newest first."""
    store = bootstrap.store(settings)
    try:
        return drift_changes.all_of(store, unacknowledged=unacknowledged)
    finally:
        store.close()


def acknowledge(settings: Settings, change_id: str) -> str:
    """Make a change the baseline of its measure, from its day on.

    Raises:
        NotFound: there is no such change.
        StateConflict: it is acknowledged already.
    """
    store = bootstrap.store(settings)
    try:
        audit.record(store, audit.COMMAND_LINE, AuditAction.ACKNOWLEDGE_DRIFT, detail=change_id)
        return drift_watch.words(drift_changes.acknowledge(store, change_id, audit.COMMAND_LINE))
    finally:
        store.close()
