"""Who may sign in, as what, and which tokens stand for them.

Names are given once: what somebody did stays under their name when they are gone.
"""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from stream_app.errors import RapportError
from stream_app.store.reading.scope import EVERYTHING, Scope
from stream_app.store.repository import Store
from stream_app.store.tables import access_tokens, people

BROWSER = "browser"
"""The label of what stands for a sign-in."""
TOKEN_PREFIX = "rapport_"  # noqa: S105  # marks a token, and is none


class PersonRole(Enum):
    """``counsellor``: own sessions. ``supervisor``: a team's. ``analyst``, ``admin``: no text.

    ``ingest``: a program that sends events and reads nothing.
    """

    COUNSELLOR = "counsellor"
    SUPERVISOR = "supervisor"
    ANALYST = "analyst"
    ADMIN = "admin"
    INGEST = "ingest"


class PersonError(RapportError):
    """What was asked of a person's account cannot be done."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who signs in. ``speaker``: the pseudonym that a counsellor speaks under."""

    name: str
    role: PersonRole
    team: str | None = None
    speaker: str | None = None

    @property
    def reads_transcripts(self) -> bool:
        """Whether this role may read text at all."""
        return self.role in (PersonRole.COUNSELLOR, PersonRole.SUPERVISOR)

    @property
    def scope(self) -> Scope:
        """Which sessions this person may read; a supervisor without a team reads all."""
        match self.role:
            case PersonRole.COUNSELLOR:
                return Scope(speaker=self.speaker or "")
            case PersonRole.SUPERVISOR if self.team is not None:
                return Scope(team=self.team)
            case PersonRole.INGEST:
                return Scope(speaker="")
            case _:
                return EVERYTHING


class People:
    """The accounts in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, person: Person, password_hash: str | None) -> None:
        """Make an account.

        Raises:
            PersonError: the name is taken.
        """
        row = {
            "name": person.name,
            "role": person.role.value,
            "team": person.team,
            "speaker": person.speaker,
            "password_hash": password_hash,
            "created_at": datetime.now(UTC),
        }
        if self.find(person.name) is not None:
            raise PersonError(f"there is an account {person.name} already")
        with self._store.transaction() as connection:
            try:
                connection.execute(sa.insert(people).values(row))
            except IntegrityError:  # somebody was faster, or the account is disabled
                raise PersonError(f"there was an account {person.name} once") from None

    def find(self, name: str) -> Person | None:
        """The account of this name, unless it is disabled."""
        found = self._row(name)
        return _person(found) if found else None

    def password_hash(self, name: str) -> str | None:
        """The hash that a password is compared with."""
        found = self._row(name)
        return found["password_hash"] if found else None

    def set_password(self, name: str, password_hash: str) -> None:
        """Replace the password; whoever signed in with the old one is signed out."""
        signed_in = (access_tokens.c.person == name) & (access_tokens.c.label == BROWSER)
        with self._store.transaction() as connection:
            connection.execute(sa.delete(access_tokens).where(signed_in))
            connection.execute(
                sa.update(people).where(people.c.name == name).values(password_hash=password_hash)
            )

    def all(self) -> list[Person]:
        """All accounts that are not disabled."""
        query = sa.select(people).where(people.c.disabled_at.is_(None)).order_by(people.c.name)
        with self._store.reading() as connection:
            return [_person(row) for row in connection.execute(query).mappings()]

    def disable(self, name: str) -> None:
        """Take away the account and its tokens; what the person did stays.

        Raises:
            PersonError: there is no such account.
        """
        if self.find(name) is None:
            raise PersonError(f"there is no account {name}")
        with self._store.transaction() as connection:
            connection.execute(
                sa.update(people).where(people.c.name == name).values(disabled_at=datetime.now(UTC))
            )
            connection.execute(sa.delete(access_tokens).where(access_tokens.c.person == name))

    def new_token(self, name: str, label: str, expires_at: datetime | None = None) -> str:
        """A token for programs; it is shown once, the database keeps its digest.

        Raises:
            PersonError: there is no such account.
        """
        if self.find(name) is None:
            raise PersonError(f"there is no account {name}")
        token = TOKEN_PREFIX + secrets.token_urlsafe(32)
        row = {
            "digest": _digest(token),
            "person": name,
            "label": label,
            "created_at": datetime.now(UTC),
            "expires_at": expires_at,
        }
        with self._store.transaction() as connection:
            connection.execute(sa.insert(access_tokens).values(row))
        return token

    def revoke(self, name: str, label: str) -> None:
        """Make a person's tokens of this label worthless.

        Raises:
            PersonError: there are none.
        """
        chosen = (access_tokens.c.person == name) & (access_tokens.c.label == label)
        with self._store.transaction() as connection:
            if not connection.execute(sa.delete(access_tokens).where(chosen)).rowcount:
                raise PersonError(f"{name} has no token with the label {label}")

    def sign_in(self, name: str, until: datetime) -> str:
        """A token for a browser's cookie; those of this person that are over are swept away.

        Raises:
            PersonError: there is no such account.
        """
        over = access_tokens.c.expires_at < datetime.now(UTC)
        with self._store.transaction() as connection:
            connection.execute(sa.delete(access_tokens).where(access_tokens.c.person == name, over))
        return self.new_token(name, BROWSER, until)

    def sign_out(self, token: str) -> None:
        """Make a token worthless."""
        with self._store.transaction() as connection:
            connection.execute(
                sa.delete(access_tokens).where(access_tokens.c.digest == _digest(token))
            )

    def of_token(self, token: str) -> Person | None:
        """Whose token this is, if it is valid."""
        query = (
            sa.select(people)
            .join(access_tokens, access_tokens.c.person == people.c.name)
            .where(
                access_tokens.c.digest == _digest(token),
                access_tokens.c.expires_at.is_(None)
                | (access_tokens.c.expires_at > datetime.now(UTC)),
                people.c.disabled_at.is_(None),
            )
        )
        with self._store.reading() as connection:
            found = connection.execute(query).mappings().first()
        return _person(found) if found else None

    def _row(self, name: str) -> sa.RowMapping | None:
        query = sa.select(people).where(people.c.name == name, people.c.disabled_at.is_(None))
        with self._store.reading() as connection:
            return connection.execute(query).mappings().first()


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _person(row: sa.RowMapping) -> Person:
    return Person(row["name"], PersonRole(row["role"]), row["team"], row["speaker"])
