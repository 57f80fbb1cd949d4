"""Mutes: who may stop which notifications, and for how long."""

from datetime import datetime, timedelta
from typing import Final

from stream_app.store.accounts.people import Person
from stream_app.store.alerts import alert_actions
from stream_app.store.alerts.alert_actions import Mute
from stream_app.store.sessions.routing import read_routing
from stream_app.store.sessions.scored_turns import NotFound
from stream_app.work.desk import Desk

MAX_MINUTES: Final = 60 * 24 * 30
LONGEST: Final = timedelta(minutes=MAX_MINUTES)


def add(
    desk: Desk,
    person: Person,
    *,
    rule: str | None = None,
    session_id: str | None = None,
    team: str | None = None,
    until: datetime,
    reason: str | None = None,
) -> Mute:
    """Mute a rule, a session or a team; a team's supervisor, only what is the team's.

    Raises:
        NotFound: there is no such session within the person's scope.
        OutsideTeam: the team is another one.
    """
    chosen = person.chosen_team(team)
    if session_id is not None:
        found = read_routing(desk.store, [session_id]).get(session_id)
        if found is None or person.scope.team not in (None, found.team):
            raise NotFound("no such session")
        chosen = team
    return alert_actions.create_mute(
        desk.store,
        rule=rule,
        session_id=session_id,
        team=chosen,
        until=until,
        reason=reason,
        person=person.name,
    )
