"""``rapport report``: writes a printable report."""

from dataclasses import replace
from pathlib import Path

from stream_app import bootstrap
from stream_app.commands.reading import record_read
from stream_app.settings import Settings
from stream_app.store.audit import AuditAction
from stream_app.web import report
from stream_app.web.report import Wanted


def run(settings: Settings, wanted: Wanted, output: Path) -> int:
    """Write the report; returns its size in bytes."""
    record_read(settings, AuditAction.READ_STATISTICS, "report")
    store = bootstrap.read_store(settings)
    try:
        page = report.html(store, replace(wanted, archive=settings.archive)).encode()
    finally:
        store.close()
    output.write_bytes(page)
    return len(page)
