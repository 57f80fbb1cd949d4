"""Teams and alert rules to choose from in the console's filters."""

import sqlalchemy as sa

from stream_app.contracts.scores import SessionStatus
from stream_app.store.queries.scope import Scope
from stream_app.store.repository import Store
from stream_app.store.tables import alerts, session_scores, sessions


def live_teams(store: Store, scope: Scope) -> list[str]:
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


def teams(store: Store, scope: Scope) -> list[str]:
    """Names of all teams with sessions in ``scope``, sorted."""
    return _distinct(store, sessions.c.team, scope.conditions(sessions.c.session_id))


def alert_rules(store: Store, scope: Scope) -> list[str]:
    """Rules with alerts of sessions in ``scope``, sorted."""
    return _distinct(store, alerts.c.rule, scope.conditions(alerts.c.session_id))


def _distinct(
    store: Store, column: sa.Column[str], conditions: list[sa.ColumnElement[bool]]
) -> list[str]:
    query = sa.select(column).where(column.is_not(None), *conditions).distinct().order_by(column)
    with store.reading() as connection:
        return [str(name) for name in connection.scalars(query)]
