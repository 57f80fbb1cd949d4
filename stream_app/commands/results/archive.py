"""``rapport archive``: moves finished months to Parquet, and deletes expired ones."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Final

from stream_app import bootstrap
from stream_app.analytics.archive import archive
from stream_app.settings import Settings
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.lifecycle import archived, erasure_receipts
from stream_app.store.lifecycle.archived import ArchiveError

MONTHS_KEPT: Final = 3
"""Full months that stay in the database by default: baselines use the last 90 days."""


def run(settings: Settings, before: date | None, tell: Callable[[str], None]) -> None:
    """Delete expired months, then move those before ``before``, reporting each.

    Raises:
        ArchiveError: no folder is configured, it belongs to another database, or ``before`` is
            later than this month.
        StoreError: the database failed, or a session changed meanwhile; run it again.
    """
    folder = settings.archive
    if folder is None:
        raise ArchiveError("set RAPPORT_ARCHIVE to the folder for the archive")
    now = datetime.now(UTC)
    this_month = now.date().replace(day=1)
    if before is not None and before > this_month:
        raise ArchiveError("only finished months can be archived: --before is at most this month")
    store = bootstrap.store(settings)
    try:
        kept = now - timedelta(days=settings.keep_scores_days)
        for sessions in archived.expire(store, folder, kept):
            tell(f"{sessions} sessions of a month deleted: older than RAPPORT_KEEP_SCORES_DAYS")
        moved = 0
        for month in archive.archive(store, folder, before or _default(this_month), now):
            rows = ", ".join(f"{name} {count}" for name, count in month.rows.items())
            tell(f"{archived.month_name(month.month)}: {month.sessions} sessions moved ({rows})")
            moved += month.sessions
        erasure_receipts.note_swept(store, now)
        if moved:
            detail = f"{moved} sessions archived"
            audit.record(store, audit.COMMAND_LINE, AuditAction.EXPORT, detail=detail)
        tell(f"{moved} sessions moved; {archived.count(store)} are archived")
    finally:
        store.close()


def _default(this_month: date) -> date:
    """The first month that stays.

    >>> _default(date(2026, 2, 1))
    datetime.date(2025, 11, 1)
    """
    months = this_month.year * 12 + this_month.month - 1 - MONTHS_KEPT
    return date(months // 12, months % 12 + 1, 1)
