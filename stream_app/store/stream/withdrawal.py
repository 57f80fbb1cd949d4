"""What happens to a session's stored data when consent is withdrawn.

``sessions.withdrawn`` is the fact. ``sessions.hidden`` depends on the setting and excludes the
session from every scope, reporting view and roll-up. Erasing is separate from the commit, so that
an interrupted one is repeated; until then the session is hidden.

Proposals of a language model are deleted in every case, with the commit.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.contracts.events import ConsentPurpose
from stream_app.core.session.consent import ConsentRecord, OnWithdrawal, is_newer
from stream_app.store.database.connection import Database
from stream_app.store.database.tables import consents, holds, proposals, rollup_marks, sessions


def find_withdrawn(database: Database, session_ids: Sequence[str]) -> dict[str, str | None]:
    """Find those whose consent was withdrawn, with the newest wording's version."""
    withdrawn = sessions.c.session_id.in_(session_ids) & sessions.c.withdrawn
    query = (
        sa.select(sessions.c.session_id, consents.c.version)
        .outerjoin(consents, consents.c.session_id == sessions.c.session_id)
        .where(withdrawn)
    )
    found: dict[str, str | None] = {}
    if session_ids:
        with database.reading() as connection:
            for session_id, version in connection.execute(query):
                newest = found.setdefault(session_id, version)
                if is_newer(version, newest):
                    found[session_id] = version
    return found


def apply_setting(database: Database, setting: OnWithdrawal) -> int:
    """Hide or show the sessions that are not yet as the setting says; return their number."""
    hide = setting is not OnWithdrawal.KEEP
    differs = sa.select(sessions.c.session_id).where(
        sessions.c.withdrawn, sessions.c.hidden.is_(not hide)
    )
    with database.transaction() as connection:
        changed = list(connection.scalars(differs))
        if changed:
            these = sessions.c.session_id.in_(changed)
            connection.execute(sa.update(sessions).where(these).values(hidden=hide))
            marks = [{"session_id": session_id, "month": None} for session_id in changed]
            connection.execute(sa.insert(rollup_marks), marks)
    return len(changed)


def sessions_to_erase(database: Database, limit: int) -> list[str]:
    """Sessions whose consent was withdrawn, except those on legal hold."""
    held = sa.exists().where(holds.c.session_id == sessions.c.session_id)
    query = sa.select(sessions.c.session_id).where(sessions.c.withdrawn, ~held).limit(limit)
    with database.reading() as connection:
        return list(connection.scalars(query))


def not_to_ask(records: Sequence[ConsentRecord]) -> list[str]:
    """Sessions with a decision that does not permit a language model to read them."""
    return sorted(
        {
            record.session_id
            for record in records
            if record.effective and ConsentPurpose.THIRD_PARTY_PROCESSING not in record.purposes
        }
    )


def forget_proposals(connection: Connection, session_ids: Sequence[str]) -> None:
    """Delete what a language model answered about these sessions."""
    if session_ids:
        connection.execute(sa.delete(proposals).where(proposals.c.session_id.in_(session_ids)))
