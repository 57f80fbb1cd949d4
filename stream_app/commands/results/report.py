"""``rapport report``: writes a printable report, of two pages or with all curves and tables."""

from dataclasses import replace
from pathlib import Path

from stream_app import bootstrap
from stream_app.analytics.questions import attributes, marked_days, questions
from stream_app.analytics.questions.questions import Asked
from stream_app.analytics.questions.result import Analysis
from stream_app.commands.events.reading import record_read
from stream_app.findings import agreement_words
from stream_app.settings import Settings
from stream_app.store.accounts.audit import AuditAction
from stream_app.web.console.analytics import report, summary


def run(settings: Settings, wanted: summary.Wanted, output: Path) -> int:
    """Write the report of two pages; returns its size in bytes."""
    record_read(settings, AuditAction.READ_STATISTICS, "report")
    store = bootstrap.read_store(settings)

    def answer(question: str, asked: Asked) -> Analysis:
        return questions.answer(
            store, question, asked, lambda known: agreement_words.sentences(store, known)
        )

    try:
        file = settings.self_declared_attributes
        if file is not None:
            store.load_privacy(settings.redact)
            wanted = replace(wanted, attributes=attributes.read(file, store.privacy.pseudonym))
        days = marked_days.read(settings.marked_days, wanted.team)
        about = replace(wanted, days=days, archive=settings.archive)
        page = summary.html(store, summary.summarise(store, about, answer)).encode()
    finally:
        store.close()
    output.write_bytes(page)
    return len(page)


def run_full(settings: Settings, wanted: report.Wanted, output: Path) -> int:
    """Write all curves and tables; returns the size in bytes."""
    record_read(settings, AuditAction.READ_STATISTICS, "report")
    store = bootstrap.read_store(settings)
    try:
        days = marked_days.read(settings.marked_days, wanted.team)
        page = report.html(store, replace(wanted, archive=settings.archive, days=days)).encode()
    finally:
        store.close()
    output.write_bytes(page)
    return len(page)
