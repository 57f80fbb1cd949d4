"""Teams, alert rules and counsellors to choose from in the console's filters.

Each name is found by one look into an index, so a list takes as long as it has names, however many
sessions there are. Only counsellors of a team are searched for in all of the team's sessions.
"""

from dataclasses import replace

import sqlalchemy as sa

from stream_app.contracts.events import Role
from stream_app.contracts.scores import SessionStatus
from stream_app.store.database.tables import alerts, session_scores, session_speakers, sessions
from stream_app.store.sessions.scope import Scope
from stream_app.store.stream.repository import Store


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
    session = sessions.c
    if scope.team is None:
        return _read(store, _each(session.team), session.team, session.session_id, scope)
    of_team = session.team == scope.team
    everyone = replace(scope, team=None).conditions(session.session_id)
    with store.reading() as connection:
        found = connection.scalars(sa.select(session.team).where(of_team, *everyone).limit(1))
        return [str(team) for team in found]


def alert_rules(store: Store, scope: Scope) -> list[str]:
    """Rules with alerts of sessions in ``scope``, sorted."""
    return _read(store, _each(alerts.c.rule), alerts.c.rule, alerts.c.session_id, scope)


def counsellors(store: Store, scope: Scope, limit: int) -> list[str]:
    """The first pseudonyms of counsellors with sessions in ``scope``, sorted."""
    who = session_speakers.c
    of_role = who.role == Role.COUNSELLOR.value
    if scope.team is None:
        each = _each(who.speaker, of_role)
        return _read(store, each, who.speaker, who.session_id, scope, of_role)[:limit]
    query = sa.select(who.speaker).where(of_role, *scope.conditions(who.session_id)).distinct()
    with store.reading() as connection:
        return list(connection.scalars(query.order_by(who.speaker).limit(limit)))


def _each(column: sa.Column[str], *conditions: sa.ColumnElement[bool]) -> sa.CTE:
    """The different values of a column: the least one, then always the next larger one."""
    value = sa.func.min(column).label("value")
    first = sa.select(value).where(*conditions).cte("found", recursive=True)
    larger = sa.select(value).where(*conditions, column > first.c.value).scalar_subquery()
    return first.union_all(sa.select(larger).where(first.c.value.is_not(None)))


def _read(
    store: Store,
    each: sa.CTE,
    column: sa.Column[str],
    session_id: sa.Column[str],
    scope: Scope,
    *conditions: sa.ColumnElement[bool],
) -> list[str]:
    """The values of which a row is in ``scope``."""
    one = sa.select(session_id).where(
        column == each.c.value, *conditions, *_within(scope, session_id)
    )
    readable = one.limit(1).scalar_subquery().is_not(None)  # EXISTS would join whole tables
    query = sa.select(each.c.value).where(each.c.value.is_not(None), readable)
    with store.reading() as connection:
        return [str(name) for name in connection.scalars(query.order_by(each.c.value))]


def _within(scope: Scope, session_id: sa.Column[str]) -> list[sa.ColumnElement[bool]]:
    """Conditions as ``Scope.conditions``, with the team looked up for one row after the other."""
    found = replace(scope, team=None).conditions(session_id)
    if scope.team is not None:
        own = sessions.alias("own")
        team = sa.select(own.c.team).where(own.c.session_id == session_id).scalar_subquery()
        found.insert(0, team == scope.team)
    return found
