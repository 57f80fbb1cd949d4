"""``rapport hold``: legal holds on sessions."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from stream_app import bootstrap
from stream_app.commands.events.reading import record_read
from stream_app.settings import Settings
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.lifecycle import holds
from stream_app.store.lifecycle.holds import Hold
from stream_app.store.stream.repository import Store


def add(settings: Settings, session_id: str, reason: str) -> None:
    """Put a session on hold.

    Raises:
        HoldError: it is unknown or already on hold, or the reason is not valid.
    """
    with _open(settings) as store:
        holds.add(store, session_id, reason, audit.COMMAND_LINE, datetime.now(UTC))


def remove(settings: Settings, session_id: str) -> None:
    """End a session's hold.

    Raises:
        HoldError: it is not on hold.
    """
    with _open(settings) as store:
        holds.remove(store, session_id, audit.COMMAND_LINE)


def find(settings: Settings) -> list[Hold]:
    """All holds."""
    record_read(settings, AuditAction.READ_RECORDS, "hold list")
    with _open(settings) as store:
        return holds.find(store)


@contextmanager
def _open(settings: Settings) -> Iterator[Store]:
    store = bootstrap.store(settings)
    try:
        yield store
    finally:
        store.close()
