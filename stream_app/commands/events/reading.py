"""Audits what commands read, before they show it."""

from stream_app import bootstrap
from stream_app.settings import Settings
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction


def record_read(
    settings: Settings, action: AuditAction, command: str, session_id: str | None = None
) -> None:
    """Record that somebody reads with ``command``; also if the data is in a replica or in topics.

    Raises:
        StoreError: it could not be recorded; do not show the data.
    """
    store = bootstrap.store(settings)
    try:
        audit.record(store, audit.COMMAND_LINE, action, session_id, f"rapport {command}")
    finally:
        store.close()
