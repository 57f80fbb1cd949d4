"""Whether a person has had a whole transcript shown, as the audit trail says."""

from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from stream_app.contracts.events import Role
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.database.audit_subjects import SESSION
from stream_app.store.database.tables import audit, audit_subjects, session_speakers
from stream_app.store.stream.repository import Store

OF_API: Final = "api"
OF_REVIEW: Final = "review"
_about: Final = audit_subjects.c


def of_session(store: Store, person: str, session_id: str) -> bool:
    """Whether the person has ever read this session."""
    return _exists(store, person, _about.value == session_id)


def of_counsellor(store: Store, person: str, counsellor: str, since: datetime) -> bool:
    """Whether the person has since then read a session in which this counsellor spoke."""
    spoke = sa.select(session_speakers.c.session_id).where(
        session_speakers.c.speaker == counsellor,
        session_speakers.c.role == Role.COUNSELLOR.value,
    )
    return _exists(store, person, _about.value.in_(spoke), audit.c.at >= since)


def _exists(store: Store, person: str, *conditions: sa.ColumnElement[bool]) -> bool:
    """Entries without a detail are of the session's page; exports and excerpts do not count."""
    shown: sa.ColumnElement[Any] = audit.c.detail
    query = (
        sa.select(audit.c.id)
        .join(audit_subjects, _about.subject == audit.c.subject)
        .where(
            audit.c.person == person,
            audit.c.action == AuditAction.READ_TRANSCRIPT.value,
            _about.kind == SESSION,
            shown.is_(None) | shown.in_([OF_API, OF_REVIEW]),
            *conditions,
        )
        .limit(1)
    )
    with store.reading() as connection:
        return connection.scalar(query) is not None
