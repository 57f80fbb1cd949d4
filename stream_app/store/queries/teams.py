"""Teams with live sessions, for the console's filter."""

import sqlalchemy as sa

from stream_app.contracts.scores import SessionStatus
from stream_app.store.queries.scope import Scope
from stream_app.store.repository import Store
from stream_app.store.tables import session_scores, sessions


def live(store: Store, scope: Scope) -> list[str]:
    """Names of teams with open sessions in ``scope``, sorted."""
    query = (
        sa.select(sessions.c.team)
        .join(session_scores, session_scores.c.session_id == sessions.c.session_id)
        .where(
            session_scores.c.status == SessionStatus.OPEN.value,
            sessions.c.team.is_not(None),
            *scope.conditions(sessions.c.session_id),
        )
        .distinct()
        .order_by(sessions.c.team)
    )
    with store.reading() as connection:
        return [str(team) for team in connection.scalars(query)]
