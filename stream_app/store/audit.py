"""Who read which transcript, and who did what: the trail that a service must be able to show."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

import sqlalchemy as sa

from stream_app.store.repository import Store
from stream_app.store.tables import audit


class Audited(Enum):
    """What leaves a trace."""

    SIGN_IN = "sign-in"
    SIGN_IN_REFUSED = "sign-in refused"
    READ_TRANSCRIPT = "read transcript"
    READ_COUNSELLOR = "read counsellor"
    EXPORT = "export"
    CHANGE_ACCOUNT = "change account"


@dataclass(frozen=True, slots=True)
class Trace:
    """One entry."""

    at: datetime
    person: str
    action: str
    session_id: str | None
    detail: str | None


def record(
    store: Store,
    person: str,
    action: Audited,
    session_id: str | None = None,
    detail: str | None = None,
) -> None:
    """Write an entry; it is committed before what it tells of is shown."""
    row = {
        "at": datetime.now(UTC),
        "person": person[:100],
        "action": action.value,
        "session_id": session_id,
        "detail": detail[:500] if detail else None,
    }
    with store.transaction() as connection:
        connection.execute(sa.insert(audit).values(row))


def trail(store: Store, session_id: str | None = None, limit: int = 200) -> list[Trace]:
    """The newest entries, of one session or of all."""
    query = sa.select(audit).order_by(audit.c.id.desc()).limit(limit)
    if session_id is not None:
        query = query.where(audit.c.session_id == session_id)
    with store.reading() as connection:
        found = connection.execute(query).mappings().all()
    return [
        Trace(row["at"], row["person"], row["action"], row["session_id"], row["detail"])
        for row in found
    ]
