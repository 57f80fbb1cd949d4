"""``rapport people``: manages the accounts of the console."""

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from stream_app import bootstrap
from stream_app.settings import Settings
from stream_app.store import audit
from stream_app.store.audit import AuditAction
from stream_app.store.people import (
    ANY_SESSION,
    IngestScope,
    People,
    Person,
    PersonError,
    PersonRole,
    Right,
)
from stream_app.store.repository import Store
from stream_app.web.passwords import hash_new_password


def add(
    settings: Settings,
    name: str,
    role: PersonRole,
    team: str | None,
    speaker: str | None,
    password: str | None,
    *,
    all_teams: bool = False,
) -> None:
    """Create an account; without a password, only with tokens.

    Raises:
        PersonError: the name exists, the password is too weak, a counsellor has no speaker, or it
            is not clear which teams a supervisor reads.
    """
    _check_teams(role, team, all_teams)
    if role is PersonRole.COUNSELLOR and speaker is None:
        raise PersonError("a counsellor needs --speaker, the speaker_id of their turns in events")
    store = bootstrap.store(settings)
    store.load_privacy(settings.redact)
    pseudonym = store.privacy.pseudonym(speaker) if speaker is not None else None
    hashed = hash_new_password(password, name) if password is not None else None
    People(store).add(Person(name, role, team, pseudonym, all_teams=all_teams), hashed)
    _audit(store, f"added {name} as {role.value}{_of(team, all_teams)}")


def list_accounts(settings: Settings) -> list[Person]:
    """All accounts."""
    return People(bootstrap.store(settings)).all()


def change_teams(settings: Settings, name: str, team: str | None, *, all_teams: bool) -> None:
    """Change which teams a supervisor reads.

    Raises:
        PersonError: there is no such account, or it is not clear which teams it reads.
    """
    store = bootstrap.store(settings)
    people = People(store)
    person = people.find(name)
    if person is None:
        raise PersonError(f"there is no account {name}")
    _check_teams(person.role, team, all_teams)
    people.set_access(replace(person, team=team, all_teams=all_teams))
    _audit(store, f"{name} is {person.role.value}{_of(team, all_teams)}")


def change_password(settings: Settings, name: str, password: str) -> None:
    """Change the password of an account.

    Raises:
        PersonError: there is no such account, or the password is too weak.
    """
    store = bootstrap.store(settings)
    people = People(store)
    if people.find(name) is None:
        raise PersonError(f"there is no account {name}")
    people.set_password(name, hash_new_password(password, name))
    _audit(store, f"new password for {name}")


def new_token(
    settings: Settings,
    name: str,
    label: str,
    days: int,
    sends: IngestScope = ANY_SESSION,
    rights: Collection[Right] = (),
) -> str:
    """Create a token for the API. Without ``rights``, it reads scores or, for a program, sends.

    Raises:
        PersonError: there is no such account, or it cannot have these limits or rights.
    """
    until = datetime.now(UTC) + timedelta(days=days)
    store = bootstrap.store(settings)
    people = People(store)
    person = people.find(name)
    if sends.limits and person is not None and person.role is not PersonRole.INGEST:
        raise PersonError("--team, --domain and --channel limit the tokens of the role ingest")
    sender = person is not None and person.role is PersonRole.INGEST
    usual = Right.SEND_EVENTS if sender else Right.READ_SCORES
    allowed = frozenset(rights or (usual,))
    token = people.create_token(name, label, until, sends, allowed)
    may = ", ".join(sorted(right.value for right in allowed))
    _audit(store, f"new token for {name}: {label}, {may}, {days} days")
    return token


def revoke(settings: Settings, name: str, label: str) -> None:
    """Revoke the tokens with this label.

    Raises:
        PersonError: there are none.
    """
    store = bootstrap.store(settings)
    People(store).revoke_tokens(name, label)
    _audit(store, f"revoked tokens of {name}: {label}")


def disable(settings: Settings, name: str) -> None:
    """Disable the account.

    Raises:
        PersonError: there is no such account.
    """
    store = bootstrap.store(settings)
    People(store).disable(name)
    _audit(store, f"disabled {name}")


def _check_teams(role: PersonRole, team: str | None, all_teams: bool) -> None:
    of_teams = role in (PersonRole.SUPERVISOR, PersonRole.STUDY)
    if of_teams and all_teams == (team is not None):
        raise PersonError(f"the role {role.value} needs either --team or --all-teams")
    if all_teams and not of_teams:
        raise PersonError("--all-teams is for supervisors and studies")


def _of(team: str | None, all_teams: bool) -> str:
    return " of all teams" if all_teams else f" of {team}" if team else ""


def _audit(store: Store, what: str) -> None:
    audit.record(store, audit.COMMAND_LINE, AuditAction.CHANGE_ACCOUNT, detail=what)
