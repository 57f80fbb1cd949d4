"""What the policy profile asks before a person acts on another on account of a session.

Acts are coaching goals, interventions, the sign-off of a review and the decision on a dispute. With
``after-reading`` each needs an entry of the audit trail that this person had the transcript of the
session shown: the session's page, its API, or the page of its review. For a goal, of a session of
the counsellor in the last ``GOAL_DAYS``. With ``none`` there are no goals and no interventions.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from stream_app.policies import Actions, Profile
from stream_app.store.accounts.people import Person
from stream_app.store.sessions.scored_turns import NotFound, StateConflict
from stream_app.store.work import disputes, readings
from stream_app.work.desk import Desk

GOAL_DAYS: Final = 90


def check_allowed(desk: Desk) -> None:
    """Whether people may act on others at all.

    Raises:
        StateConflict: the policy does not allow it.
    """
    profile = desk.settings.profile
    if profile is not None and profile.actions is Actions.NONE:
        raise StateConflict(f"the policy {profile.name} allows no goals and no interventions")


def check_session_read(desk: Desk, person: Person, session_id: str) -> None:
    """Whether the person has read the session, if the policy asks for it.

    Raises:
        StateConflict: no reading of the transcript is in the audit trail.
    """
    profile = _asks_for_reading(desk)
    if profile is not None and not readings.of_session(desk.store, person.name, session_id):
        raise StateConflict(
            f"the policy {profile.name} asks that you read the session before: open its page"
        )


def check_counsellor_read(desk: Desk, person: Person, counsellor: str) -> None:
    """Whether the person has lately read a session of the counsellor, if the policy asks for it.

    Raises:
        StateConflict: no such reading is in the audit trail.
    """
    profile = _asks_for_reading(desk)
    if profile is None:
        return
    since = datetime.now(UTC) - timedelta(days=GOAL_DAYS)
    if not readings.of_counsellor(desk.store, person.name, counsellor, since):
        raise StateConflict(
            f"the policy {profile.name} asks that you read a session of this counsellor before: "
            f"none is in the audit trail of the last {GOAL_DAYS} days"
        )


def check_dispute_read(desk: Desk, person: Person, dispute_id: str) -> None:
    """Whether the person has read the session of a dispute, if the policy asks for it.

    Raises:
        NotFound: there is no such dispute, or not for this person.
        StateConflict: no reading of the transcript is in the audit trail.
    """
    found = disputes.one(desk.store, person.scope, dispute_id)
    if found is None:
        raise NotFound("there is no such dispute")
    check_session_read(desk, person, found.session_id)


def _asks_for_reading(desk: Desk) -> Profile | None:
    profile = desk.settings.profile
    asks = profile is not None and profile.actions is Actions.AFTER_READING
    return profile if asks else None
