"""Changes of accounts and their tokens, by the command line and by administrators; all audited."""

import secrets
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog

from stream_app.contracts.events import MAX_ID_CHARS
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction, AuditEntry
from stream_app.store.accounts.people import (
    ANY_SESSION,
    BROWSER,
    IngestScope,
    People,
    Person,
    PersonError,
)
from stream_app.store.accounts.roles import RIGHTS, PersonRole, Right
from stream_app.store.stream.repository import Store
from stream_app.work.passwords import hash_new_password, hash_password

MAX_NAME: Final = 100
MAX_IDENTITY_CHARS: Final = 500
INITIAL_BYTES: Final = 15
SHOWN_FOR: Final = timedelta(days=30)
log = structlog.get_logger(__name__)
WITH_PASSWORD: Final = frozenset(
    {PersonRole.COUNSELLOR, PersonRole.SUPERVISOR, PersonRole.ANALYST, PersonRole.ADMIN}
)
"""Roles that sign in to the console; the others only have tokens."""


class AccountChanges:
    """``by``: the person of the audit entries; methods raise ``PersonError`` with what is wrong."""

    def __init__(self, store: Store, by: str) -> None:
        self._store = store
        self._by = by
        self._people = People(store)

    def add(
        self,
        name: str,
        role: PersonRole,
        team: str | None = None,
        speaker: str | None = None,
        password: str | None = None,
        *,
        all_teams: bool = False,
    ) -> None:
        """Create an account; without a password, only with tokens or single sign-on."""
        hashed = hash_new_password(password, name) if password is not None else None
        self._add(name, role, team, speaker, hashed, all_teams=all_teams)

    def add_with_initial_password(
        self,
        name: str,
        role: PersonRole,
        team: str | None = None,
        speaker: str | None = None,
        *,
        all_teams: bool = False,
    ) -> str:
        """Create an account and return a random password that must be changed at first use."""
        password = _initial_password()
        hashed = hash_password(password)
        self._add(name, role, team, speaker, hashed, all_teams=all_teams, initial=True)
        return password

    def change_teams(self, name: str, team: str | None, *, all_teams: bool) -> None:
        """Change which teams a supervisor reads."""
        person = self._find(name)
        _check_teams(person.role, team, all_teams)
        self._people.set_access(replace(person, team=team, all_teams=all_teams))
        self._audit(f"{name} is {person.role.value}{_of(team, all_teams)}", person.role)

    def bind(self, name: str, issuer: str, sub: str) -> None:
        """Let the person with this ``sub`` at the identity provider sign in to the account."""
        if self._find(name).role not in WITH_PASSWORD:
            raise PersonError("accounts of programs and studies have tokens, no sign-in")
        self._people.bind(name, identity_of(issuer, sub))
        self._audit(f"{name} is bound to {sub} at the identity provider")

    def change_password(self, name: str, password: str) -> None:
        """Replace the password and end the sign-ins."""
        role = self._find(name).role
        self._people.set_password(name, hash_new_password(password, name))
        self._audit(f"new password for {name}", role)

    def new_initial_password(self, name: str) -> str:
        """Replace the password by a random one that must be changed at its first use."""
        role = self._find(name).role
        if role not in WITH_PASSWORD:
            raise PersonError("accounts of programs have tokens, no passwords")
        password = _initial_password()
        self._people.set_password(name, hash_password(password), initial=True)
        self._audit(f"initial password for {name}", role)
        return password

    def new_token(
        self,
        name: str,
        label: str,
        days: int,
        sends: IngestScope = ANY_SESSION,
        rights: Collection[Right] = (),
    ) -> str:
        """Create a token. Without ``rights``, it reads scores or, for a program, sends."""
        person = self._find(name)
        if sends.limits and person.role is not PersonRole.INGEST:
            raise PersonError("--team, --domain and --channel limit the tokens of the role ingest")
        if label == BROWSER:
            raise PersonError(f"the label {BROWSER} is that of sign-ins")
        usual = Right.SEND_EVENTS if person.role is PersonRole.INGEST else Right.READ_SCORES
        allowed = frozenset(rights or (usual,))
        until = datetime.now(UTC) + timedelta(days=days)
        token = self._people.create_token(name, label, until, sends, allowed)
        may = ", ".join(sorted(right.value for right in allowed))
        reads = person.role if Right.READ_TEXT in allowed else None
        self._audit(f"new token for {name}: {label}, {may}, {days} days", reads)
        return token

    def revoke(self, name: str, label: str) -> None:
        """Revoke the tokens with this label."""
        self._people.revoke_tokens(name, label)
        self._audit(f"revoked tokens of {name}: {label}")

    def end_sign_ins(self, name: str) -> int:
        """Sign the person out of all browsers; return their number."""
        self._find(name)
        ended = self._people.end_sign_ins(name)
        self._audit(f"ended {ended} sign-ins of {name}")
        return ended

    def disable(self, name: str) -> None:
        """Disable the account."""
        self._people.disable(name)
        self._audit(f"disabled {name}")

    def _add(
        self,
        name: str,
        role: PersonRole,
        team: str | None,
        speaker: str | None,
        hashed: str | None,
        *,
        all_teams: bool,
        initial: bool = False,
    ) -> None:
        _check_teams(role, team, all_teams)
        if role is PersonRole.COUNSELLOR and speaker is None:
            raise PersonError(
                "a counsellor needs a speaker: the speaker_id of their turns in events"
            )
        pseudonym = self._store.privacy.pseudonym(speaker) if speaker is not None else None
        person = Person(name, role, team, pseudonym, all_teams=all_teams, initial_password=initial)
        self._people.add(person, hashed)
        self._audit(f"added {name} as {role.value}{_of(team, all_teams)}", role)

    def _find(self, name: str) -> Person:
        person = self._people.find(name)
        if person is None:
            raise PersonError(f"there is no account {name}")
        return person

    def _audit(self, what: str, opens: PersonRole | None = None) -> None:
        """Record a change; ``opens``: the role of the account that somebody can now use.

        One that reads transcripts is shown to all administrators (``grants``).
        """
        audit.record(self._store, self._by, AuditAction.CHANGE_ACCOUNT, detail=what)
        if opens is not None and Right.READ_TEXT in RIGHTS[opens]:
            audit.record(self._store, self._by, AuditAction.GRANT_READING, detail=what)
            log.warning("reading.granted", by=self._by, change=what)


def grants(store: Store, now: datetime) -> list[AuditEntry]:
    """Who was given access to transcripts lately, and by whom, newest first.

    Every administrator sees it, so that none makes himself a reader unseen.
    """
    return audit.since(store, AuditAction.GRANT_READING, now - SHOWN_FOR)


def identity_of(issuer: str, sub: str) -> str:
    """How a person at an identity provider is stored: names change hands, this pair does not.

    Raises:
        PersonError: the ``sub`` is not one.
    """
    identity = f"{issuer} {sub}"
    if not sub or len(identity) > MAX_IDENTITY_CHARS or "\0" in sub:
        raise PersonError("the claim sub is empty or too long")
    return identity


def _initial_password() -> str:
    return secrets.token_urlsafe(INITIAL_BYTES)


def _check_teams(role: PersonRole, team: str | None, all_teams: bool) -> None:
    of_teams = role in (PersonRole.SUPERVISOR, PersonRole.STUDY)
    if of_teams and all_teams == (team is not None):
        raise PersonError(f"the role {role.value} needs either a team or all teams")
    if all_teams and not of_teams:
        raise PersonError("only supervisors and studies can have all teams")
    if team is not None and len(team) > MAX_ID_CHARS:
        raise PersonError(f"a team has at most {MAX_ID_CHARS} characters")


def _of(team: str | None, all_teams: bool) -> str:
    return " of all teams" if all_teams else f" of {team}" if team else ""
