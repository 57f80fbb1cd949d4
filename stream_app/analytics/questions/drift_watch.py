"""Looks for changes of the data or the model every day, and reports each of them once."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from stream_app.analytics.questions import drift, frames
from stream_app.analytics.questions.drift import BASELINE, DAYS, Change, Subject
from stream_app.store.alerts import drift_changes
from stream_app.store.alerts.drift_changes import DriftChange, FoundChange
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store

READ: Final = timedelta(days=BASELINE + DAYS + 30)
"""How far back a check reads: the baseline, the current period, and a month without sessions."""


def acknowledged(store: Store) -> dict[Subject, datetime]:
    """The latest acknowledged change of each figure, by the day from which it is the baseline."""
    found: dict[Subject, datetime] = {}
    for each in drift_changes.all_of(store):
        if each.acknowledged_at is not None:
            subject = Subject(each.name, each.measure, each.about)
            found[subject] = max(each.since, found.get(subject, each.since))
    return found


def check(store: Store, now: datetime, archive: Path | None = None) -> list[DriftChange]:
    """Record the changes of the weeks before ``now`` that are new, and return them.

    Raises:
        ArchiveError: archived sessions are meant, and the archive is not there.
    """
    found = frames.read(
        store, ALL_SESSIONS, now - READ, now, with_turns=True, with_heads=True, archive=archive
    )
    if found.sessions.empty:
        return []
    shifts = drift.shifts_of(found, None, acknowledged(store))
    return drift_changes.record(store, map(_recorded, shifts.changes))


def words(change: DriftChange) -> str:
    """A change in one line."""
    about = Subject(change.name, change.measure, change.about)
    return drift.words(about, change.value, change.since)


def _recorded(change: Change) -> FoundChange:
    name, measure, about = change.subject
    value = change.estimate.value or 0.0
    return FoundChange(name, measure, about, change.since.to_pydatetime(), value)
