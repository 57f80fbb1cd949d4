"""Which counsellors a supervisor can let read a session, and doing so; every change is audited."""

from dataclasses import dataclass

from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.sessions import sessions
from stream_app.store.sessions.consents import SessionConsent
from stream_app.store.sessions.scored_turns import NotFound
from stream_app.store.work import assignments
from stream_app.work.desk import Desk


@dataclass(frozen=True, slots=True)
class Readers:
    """Accounts of the team's counsellors, by whether a session is assigned to them.

    ``assignable``: False without consent.
    """

    assigned: list[str]
    others: list[str]
    assignable: bool


def readers(desk: Desk, person: Person, consent: SessionConsent) -> Readers:
    """The counsellors that a session is assigned to, and those it could be assigned to."""
    session_id = consent.session_id
    team = None if person.all_teams else person.team or ""
    known = assignments.counsellors(desk.store, session_id, team)
    assignable = bool(consent.consent) and not consent.withdrawn
    if consent.consent is None:
        assignable = assignments.is_assignable(desk.store, session_id)
    return Readers(
        [name for name, assigned in known.items() if assigned],
        [name for name, assigned in known.items() if not assigned],
        assignable,
    )


def assign(desk: Desk, person: Person, session_id: str, name: str) -> None:
    """Let a counsellor read a session.

    Raises:
        NotFound: the session or the account is outside the supervisor's scope.
        StateConflict: consent was not given, or was withdrawn.
    """
    speaker = _speaker(desk, person, session_id, name)
    assignments.assign(desk.store, session_id, speaker, person.name)
    audit.record(desk.store, person.name, AuditAction.ASSIGN, session_id, f"to {name}")


def withdraw(desk: Desk, person: Person, session_id: str, name: str) -> None:
    """Delete a counsellor's assignment.

    Raises:
        NotFound: the session or the account is outside the supervisor's scope.
    """
    speaker = _speaker(desk, person, session_id, name)
    assignments.withdraw(desk.store, session_id, speaker)
    detail = f"no longer to {name}"
    audit.record(desk.store, person.name, AuditAction.ASSIGN, session_id, detail)


def _speaker(desk: Desk, person: Person, session_id: str, name: str) -> str:
    """The pseudonym of a counsellor's account."""
    if sessions.bundle_of(desk.store, person.scope, session_id) is None:
        raise NotFound("no such session")
    found = desk.people.find(name)
    if found is None or not _of_team(person, found):
        raise NotFound("no such counsellor in your team")
    if found.speaker is None:
        raise NotFound("this account has no speaker id: `rapport people add --speaker`")
    return found.speaker


def _of_team(person: Person, other: Person) -> bool:
    """Whether a supervisor may assign sessions to this account. Counsellors may have no team."""
    own = person.all_teams or other.team in (None, person.team)
    return other.role is PersonRole.COUNSELLOR and own
