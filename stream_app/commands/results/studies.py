"""``rapport studies``: approved studies, whose accounts may export redacted text."""

from datetime import datetime

from stream_app import bootstrap
from stream_app.settings import Settings
from stream_app.store.accounts import audit, studies
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.studies import Study
from stream_app.store.stream.repository import Store


def admit(settings: Settings, study_id: str, account: str, until: datetime) -> Study:
    """Let an account export text for a study until a date.

    Raises:
        PersonError: there is no such account of the role ``study``.
        StudyRefused: the date has passed.
    """
    store = bootstrap.store(settings)
    study = studies.admit(store, study_id, account, until)
    _audit(store, f"{account} in study {study_id} until {until:%Y-%m-%d}")
    return study


def end(settings: Settings, study_id: str) -> int:
    """End a study for all its accounts; returns their number.

    Raises:
        StudyRefused: there is no such study.
    """
    store = bootstrap.store(settings)
    count = studies.end(store, study_id)
    _audit(store, f"ended study {study_id}")
    return count


def every(settings: Settings) -> list[Study]:
    """All studies with their accounts."""
    return studies.every(bootstrap.store(settings))


def _audit(store: Store, what: str) -> None:
    audit.record(store, audit.COMMAND_LINE, AuditAction.CHANGE_ACCOUNT, detail=what)
