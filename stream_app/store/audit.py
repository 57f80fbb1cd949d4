"""Who read which transcript, and who did what: the trail that a service must be able to show."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

import sqlalchemy as sa

from stream_app.store.reading.pages import Page, cursor_of, place_of
from stream_app.store.repository import Store
from stream_app.store.tables import audit

ORDER = "audit"
COMMAND_LINE = "(command line)"
"""Who did it, where nobody has signed in."""


class Audited(Enum):
    """What leaves a trace."""

    SIGN_IN = "sign-in"
    SIGN_IN_REFUSED = "sign-in refused"
    READ_TRANSCRIPT = "read transcript"
    READ_COUNSELLOR = "read counsellor"
    EXPORT = "export"
    CHANGE_ACCOUNT = "change account"
    ERASE = "erase"


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
    record_all(store, person, action, [session_id], detail)


def record_all(
    store: Store,
    person: str,
    action: Audited,
    session_ids: Sequence[str | None],
    detail: str | None = None,
) -> None:
    """Write an entry for each of these sessions, in one transaction."""
    if not session_ids:
        return
    row = {
        "at": datetime.now(UTC),
        "person": person[:100],
        "action": action.value,
        "detail": detail[:500] if detail else None,
    }
    with store.transaction() as connection:
        rows = [{**row, "session_id": session_id} for session_id in session_ids]
        connection.execute(sa.insert(audit), rows)


def find(
    store: Store,
    *,
    session_id: str | None = None,
    person: str | None = None,
    action: Audited | None = None,
    cursor: str | None = None,
    limit: int = 100,
) -> Page[Trace]:
    """A page of entries, newest first.

    Raises:
        BadCursor: the cursor is not of this list.
    """
    query = sa.select(audit).order_by(audit.c.id.desc()).limit(limit + 1)
    for column, value in (
        (audit.c.session_id, session_id),
        (audit.c.person, person),
        (audit.c.action, action.value if action else None),
    ):
        if value is not None:
            query = query.where(column == value)
    if cursor is not None:
        [place] = place_of(ORDER, cursor, [int])
        query = query.where(audit.c.id < place)
    with store.reading() as connection:
        found = connection.execute(query).mappings().all()
    more = len(found) > limit
    return Page(
        [_trace(row) for row in found[:limit]],
        cursor_of(ORDER, [found[limit - 1]["id"]]) if more else None,
    )


def trail(store: Store, session_id: str | None = None, limit: int = 200) -> list[Trace]:
    """The newest entries, of one session or of all."""
    query = sa.select(audit).order_by(audit.c.id.desc()).limit(limit)
    if session_id is not None:
        query = query.where(audit.c.session_id == session_id)
    with store.reading() as connection:
        found = connection.execute(query).mappings().all()
    return [_trace(row) for row in found]


def _trace(row: sa.RowMapping) -> Trace:
    return Trace(row["at"], row["person"], row["action"], row["session_id"], row["detail"])
