"""Accounts with their roles, and their access tokens.

Names are never reused, because the audit trail and ratings keep the name of a disabled account.
"""

import hashlib
import secrets
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from stream_app.errors import RapportError
from stream_app.store.accounts.roles import RIGHTS, PersonRole, Right
from stream_app.store.database.any_of import IDS, any_of
from stream_app.store.database.tables import (
    UtcDateTime,
    access_tokens,
    people,
    pins,
    presence,
    saved_views,
)
from stream_app.store.sessions.scope import ALL_SESSIONS, NO_SESSIONS, Scope
from stream_app.store.stream.repository import Store

BROWSER = "browser"
"""The label of tokens created by signing in."""
USE_STEP: Final = timedelta(minutes=1)
"""How precisely the last use of a browser is stored."""
TOKEN_PREFIX = "rapport_"  # noqa: S105  # a prefix, not a token


class PersonError(RapportError):
    """An account or token cannot be created or changed as requested."""


class AccountDisabled(PersonError):
    """The account exists, but may not be used any more."""


class OutsideTeam(RapportError):
    """A supervisor asked for a team that is not theirs."""


@dataclass(frozen=True, slots=True)
class IngestScope:
    """Which sessions a token may send events for; None = any."""

    NAMES: ClassVar = ("team", "domain", "channel")

    team: str | None = None
    domain: str | None = None
    channel: str | None = None

    @property
    def limits(self) -> list[tuple[str, str]]:
        """Field and required value, where there is a limit."""
        return [(name, value) for name in self.NAMES if (value := getattr(self, name)) is not None]


ANY_SESSION = IngestScope()


@dataclass(frozen=True, slots=True)
class Person:
    """An account. ``speaker``: the pseudonym of a counsellor as a speaker.

    ``all_teams``: a supervisor or study without a team reads all teams; otherwise none. ``sends``
    and ``rights`` belong to the token in use: the sessions it may send events for, and what it may
    do (None: everything that the role may). ``initial_password``: somebody else knows the password,
    so it must be changed first.
    """

    name: str
    role: PersonRole
    team: str | None = None
    speaker: str | None = None
    all_teams: bool = False
    sends: IngestScope = ANY_SESSION
    rights: frozenset[Right] | None = None
    initial_password: bool = False

    @property
    def reads_transcripts(self) -> bool:
        """Whether this person may read transcript text with the token in use."""
        return Right.READ_TEXT in RIGHTS[self.role] and self.has(Right.READ_TEXT)

    def has(self, right: Right) -> bool:
        """Whether the token in use has this right."""
        return self.rights is None or right in self.rights

    @property
    def scope(self) -> Scope:
        """The sessions that this person may read."""
        match self.role:
            case PersonRole.COUNSELLOR:
                return Scope(speaker=self.speaker or "")
            case PersonRole.SUPERVISOR | PersonRole.STUDY if self.team is not None:
                return Scope(team=self.team)
            case PersonRole.SUPERVISOR | PersonRole.STUDY if not self.all_teams:
                return NO_SESSIONS
            case PersonRole.INGEST:
                return NO_SESSIONS
            case _:
                return ALL_SESSIONS

    def chosen_team(self, asked: str | None) -> str | None:
        """The team that a request is about: the person's own, or ``asked``; None for all teams.

        Raises:
            OutsideTeam: the person may not read that team.
        """
        scope = self.scope
        if scope == NO_SESSIONS:
            raise OutsideTeam("this account has no team; ask your administrator for one")
        if scope.team is not None and asked not in (None, scope.team):
            raise OutsideTeam("this team is not yours")
        return asked if scope.team is None else scope.team


@dataclass(frozen=True, slots=True)
class TokenRead:
    """A token without its secret. ``rights`` None: everything that the role may."""

    label: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    rights: frozenset[Right] | None


_ACCOUNT: Final = sa.select(people).where(
    people.c.name == sa.bindparam("of"), people.c.disabled_at.is_(None)
)
_NAMES_OF_SPEAKERS: Final = (
    sa.select(people.c.speaker, people.c.name)
    .where(people.c.disabled_at.is_(None), people.c.speaker.is_not(None), people.c.speaker != "")
    .order_by(people.c.name)
)
_NAMES_OF_THESE: Final = _NAMES_OF_SPEAKERS.where(any_of(people.c.speaker, IDS))


class People:
    """The accounts in a store. ``idle_after``: an unused browser's sign-in then ends."""

    def __init__(self, store: Store, idle_after: timedelta | None = None) -> None:
        self._store = store
        self._idle_after = idle_after
        self._by_token = _by_token(ends_idle=idle_after is not None)

    def add(self, person: Person, password_hash: str | None, identity: str | None = None) -> None:
        """Create an account; ``person.initial_password``: the password must be changed first.

        ``identity``: the person at an identity provider who may sign in to it.

        Raises:
            PersonError: the name is taken.
        """
        row = {
            "name": person.name,
            "role": person.role.value,
            "team": person.team,
            "speaker": person.speaker,
            "all_teams": person.all_teams,
            "password_hash": password_hash,
            "initial_password": person.initial_password,
            "identity": identity,
            "created_at": datetime.now(UTC),
        }
        if self.find(person.name) is not None:
            raise PersonError(f"account {person.name} already exists")
        with self._store.transaction() as connection:
            try:
                connection.execute(sa.insert(people).values(row))
            except IntegrityError:  # created concurrently, or disabled
                raise PersonError(
                    f"account {person.name} existed before; names are not reused"
                ) from None

    def find(self, name: str) -> Person | None:
        """The account of this name, unless it is disabled."""
        found = self._row(name)
        return _person(found) if found else None

    def password_hash(self, name: str) -> str | None:
        """The account's password hash, or None."""
        found = self._row(name)
        return found["password_hash"] if found else None

    def set_password(self, name: str, password_hash: str, *, initial: bool = False) -> None:
        """Replace the password and end all browser sessions of the person.

        ``initial``: somebody else chose it, so the person must change it before anything else.
        """
        values = {"password_hash": password_hash, "initial_password": initial}
        with self._store.transaction() as connection:
            connection.execute(sa.delete(access_tokens).where(_browsers_of(name)))
            connection.execute(sa.update(people).where(people.c.name == name).values(values))

    def end_sign_ins(self, name: str) -> int:
        """Sign the person out of all browsers; return their number."""
        with self._store.transaction() as connection:
            ended = connection.execute(sa.delete(access_tokens).where(_browsers_of(name)))
        return ended.rowcount

    def toured(self, name: str) -> bool:
        """Whether the person has closed the introduction to the console."""
        found = self._row(name)
        return found is None or found["toured_at"] is not None

    def finish_tour(self, name: str) -> None:
        """Store that the person has closed the introduction."""
        change = sa.update(people).where(people.c.name == name)
        with self._store.transaction() as connection:
            connection.execute(change.values(toured_at=datetime.now(UTC)))

    def find_by_identity(self, identity: str) -> Person | None:
        """The account that a person at an identity provider is bound to.

        Raises:
            AccountDisabled: an account of this person is disabled; no other name opens one.
        """
        query = sa.select(people).where(people.c.identity == identity)
        with self._store.reading() as connection:
            found = connection.execute(query).mappings().all()
        for row in found:
            if row["disabled_at"] is not None:
                raise AccountDisabled(f"the account {row['name']} is disabled")
        return _person(found[0]) if found else None

    def identity(self, name: str) -> str | None:
        """The identity that the account is bound to, or None."""
        found = self._row(name)
        return found["identity"] if found else None

    def bind(self, name: str, identity: str) -> None:
        """Bind an account to this identity alone and end its sign-ins, which may be another's.

        Disabled accounts lose the identity: their person continues under this name.

        Raises:
            PersonError: another account that is in use has the identity.
        """
        others = (people.c.identity == identity) & (people.c.name != name)
        in_use = sa.select(people.c.name).where(others, people.c.disabled_at.is_(None))
        with self._store.transaction() as connection:
            if (other := connection.scalar(in_use)) is not None:
                raise PersonError(f"this person signs in as {other}; disable that account first")
            connection.execute(sa.update(people).where(others).values(identity=None))
            change = sa.update(people).where(people.c.name == name)
            connection.execute(change.values(identity=identity))
            connection.execute(sa.delete(access_tokens).where(_browsers_of(name)))

    def set_access(self, person: Person) -> None:
        """Replace role, teams and speaker of an account."""
        change = sa.update(people).where(people.c.name == person.name)
        values = {
            "role": person.role.value,
            "team": person.team,
            "all_teams": person.all_teams,
            "speaker": person.speaker,
        }
        with self._store.transaction() as connection:
            connection.execute(change.values(values))

    def all(self) -> list[Person]:
        """All accounts that are not disabled."""
        query = sa.select(people).where(people.c.disabled_at.is_(None)).order_by(people.c.name)
        with self._store.reading() as connection:
            return [_person(row) for row in connection.execute(query).mappings()]

    def names_of_speakers(self, speakers: Collection[str] | None = None) -> dict[str, str]:
        """Account names by the pseudonym of the counsellor; None: of all counsellors."""
        if speakers is None:
            query, given = _NAMES_OF_SPEAKERS, {}
        elif speakers:
            query, given = _NAMES_OF_THESE, {IDS: speakers}
        else:
            return {}
        with self._store.reading() as connection:
            found = connection.execute(query, given)
            return {row.speaker: row.name for row in found}

    def disable(self, name: str) -> None:
        """Disable an account, delete its tokens, views and pins; keep audit entries and ratings.

        Raises:
            PersonError: the account does not exist.
        """
        if self.find(name) is None:
            raise PersonError(f"account {name} does not exist")
        with self._store.transaction() as connection:
            connection.execute(
                sa.update(people).where(people.c.name == name).values(disabled_at=datetime.now(UTC))
            )
            connection.execute(sa.delete(access_tokens).where(access_tokens.c.person == name))
            for table in (saved_views, pins, presence):
                connection.execute(sa.delete(table).where(table.c.person == name))

    def create_token(
        self,
        name: str,
        label: str,
        expires_at: datetime | None = None,
        sends: IngestScope = ANY_SESSION,
        rights: frozenset[Right] | None = None,
    ) -> str:
        """Create a token for programs; only its digest is stored. Without ``rights``, all.

        Raises:
            PersonError: the account does not exist, or its role does not have such a right.
        """
        person = self.find(name)
        if person is None:
            raise PersonError(f"account {name} does not exist")
        if rights is not None and not rights <= RIGHTS[person.role]:
            possible = ", ".join(sorted(right.value for right in RIGHTS[person.role]))
            raise PersonError(f"a token of the role {person.role.value} can have: {possible}")
        token = TOKEN_PREFIX + secrets.token_urlsafe(32)
        row = {
            "digest": _digest(token),
            "person": name,
            "label": label,
            "created_at": datetime.now(UTC),
            "expires_at": expires_at,
            "last_used_at": datetime.now(UTC) if label == BROWSER else None,
            "rights": _stored(rights),
            **asdict(sends),
        }
        with self._store.transaction() as connection:
            connection.execute(sa.insert(access_tokens).values(row))
        return token

    def revoke_tokens(self, name: str, label: str) -> None:
        """Revoke all of a person's tokens with this label.

        Raises:
            PersonError: no token has this label.
        """
        chosen = (access_tokens.c.person == name) & (access_tokens.c.label == label)
        with self._store.transaction() as connection:
            if not connection.execute(sa.delete(access_tokens).where(chosen)).rowcount:
                raise PersonError(f"{name} has no token with the label {label}")

    def tokens(self, name: str) -> list[TokenRead]:
        """The person's valid tokens, browsers among them, newest first."""
        table = access_tokens
        expired = table.c.expires_at.is_not(None) & (table.c.expires_at < datetime.now(UTC))
        query = (
            sa.select(
                table.c.label,
                table.c.created_at,
                table.c.expires_at,
                table.c.last_used_at,
                table.c.rights,
            )
            .where(table.c.person == name, ~expired)
            .order_by(table.c.created_at.desc())
        )
        with self._store.reading() as connection:
            return [
                TokenRead(**{**row, "rights": _rights(row["rights"])})
                for row in connection.execute(query).mappings()
            ]

    def sign_in(self, name: str, until: datetime) -> str:
        """Create a token for a browser's cookie; delete the person's expired tokens.

        Raises:
            PersonError: the account does not exist.
        """
        expired = access_tokens.c.expires_at < datetime.now(UTC)
        with self._store.transaction() as connection:
            connection.execute(
                sa.delete(access_tokens).where(access_tokens.c.person == name, expired)
            )
        return self.create_token(name, BROWSER, until)

    def sign_out(self, token: str) -> None:
        """Delete a token."""
        with self._store.transaction() as connection:
            connection.execute(
                sa.delete(access_tokens).where(access_tokens.c.digest == _digest(token))
            )

    def find_by_token(self, token: str, *, used: bool = False) -> Person | None:
        """The account of a valid token, or None. ``used``: a person caused the request."""
        now = datetime.now(UTC)
        given = {"digest": _digest(token), "now": now}
        if self._idle_after is not None:
            given["used_after"] = now - self._idle_after
        with self._store.reading() as connection:
            found = connection.execute(self._by_token, given).mappings().first()
        if found is None:
            return None
        if used and found["last_used_at"] is not None:
            self._note_use(token, found["last_used_at"], now)
        scope = IngestScope(*(found[f"sends_{name}"] for name in IngestScope.NAMES))
        return replace(_person(found), sends=scope, rights=_rights(found["rights"]))

    def _note_use(self, token: str, last: datetime, now: datetime) -> None:
        """Store that a browser is in use, without a write for every request."""
        step = min(USE_STEP, (self._idle_after or USE_STEP) / 10)
        if now - last > step:
            change = sa.update(access_tokens).where(access_tokens.c.digest == _digest(token))
            with self._store.transaction() as connection:
                connection.execute(change.values(last_used_at=now))

    def _row(self, name: str) -> sa.RowMapping | None:
        with self._store.reading() as connection:
            return connection.execute(_ACCOUNT, {"of": name}).mappings().first()


def _by_token(*, ends_idle: bool) -> sa.Select[Any]:
    """The account of a token; built once, because every request reads it.

    Parameters: ``digest``, ``now``, and ``used_after`` if unused tokens end.
    """
    limits = [access_tokens.c[name].label(f"sends_{name}") for name in IngestScope.NAMES]
    expires, last_used = access_tokens.c.expires_at, access_tokens.c.last_used_at
    valid = [
        access_tokens.c.digest == sa.bindparam("digest"),
        expires.is_(None) | (expires > sa.bindparam("now", type_=UtcDateTime())),
        people.c.disabled_at.is_(None),
    ]
    if ends_idle:
        used_after = sa.bindparam("used_after", type_=UtcDateTime())
        valid.append(last_used.is_(None) | (last_used > used_after))
    return (
        sa.select(people, *limits, last_used, access_tokens.c.rights)
        .join(access_tokens, access_tokens.c.person == people.c.name)
        .where(*valid)
    )


def _browsers_of(name: str) -> sa.ColumnElement[bool]:
    return (access_tokens.c.person == name) & (access_tokens.c.label == BROWSER)


def _stored(rights: frozenset[Right] | None) -> str | None:
    return None if rights is None else " ".join(sorted(right.value for right in rights))


def _rights(stored: str | None) -> frozenset[Right] | None:
    return None if stored is None else frozenset(map(Right, stored.split()))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _person(row: sa.RowMapping) -> Person:
    return Person(
        row["name"],
        PersonRole(row["role"]),
        row["team"],
        row["speaker"],
        all_teams=row["all_teams"],
        initial_password=row["initial_password"],
    )
