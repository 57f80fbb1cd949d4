"""Versions of the alert rules, and their adoptions: the newest adoption's version is in force.

Rolling back adopts an earlier version again. Neither table is changed afterwards.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final

import sqlalchemy as sa
from pydantic import Field

from stream_app.core.rules.yaml_file import digest_of
from stream_app.store.database.tables import rule_adoptions, rule_versions
from stream_app.store.sessions.scored_turns import NotFound, StateConflict
from stream_app.store.stream.repository import Store

MAX_REASON: Final = 500


@dataclass(frozen=True, slots=True)
class Adoption:
    """When a version came into force, by whom, and why."""

    person: str
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class VersionEntry:
    """A version without its text."""

    version: int
    digest: Annotated[str, Field(description="As in alerts: `rules_digest`")]
    person: Annotated[str, Field(description="Who saved it")]
    at: datetime
    reason: str
    in_force: bool
    adoptions: Annotated[list[Adoption], Field(description="Newest first; empty: a proposal")]


@dataclass(frozen=True, slots=True)
class RuleVersion:
    """The text of a version."""

    version: int
    digest: str
    text: str


def save(store: Store, text: str, person: str, reason: str) -> int:
    """Store a version, which is not in force until it is adopted; return its number.

    The reason is redacted like turn text. The text must have been checked.
    """
    row = {
        "text": text,
        "digest": digest_of(text.encode()),
        "person": person,
        "at": datetime.now(UTC),
        "reason": store.privacy.redacted(reason),
    }
    with store.transaction() as connection:
        key = connection.execute(sa.insert(rule_versions).values(row)).inserted_primary_key
    if key is None:
        raise RuntimeError("the database returned no number")
    return int(key[0])


def adopt(
    store: Store, version: int, person: str, reason: str, replaces: int | None = None
) -> None:
    """Bring a version into force.

    ``replaces``: the version that the person saw in force; None does not check it.

    Raises:
        NotFound: there is no such version.
        StateConflict: it is in force, or ``replaces`` no longer is.
    """
    with store.transaction() as connection:
        known = sa.select(rule_versions.c.version).where(rule_versions.c.version == version)
        if connection.scalar(known) is None:
            raise NotFound("there is no such version of the rules")
        now = _newest_version(connection)
        if now == version:
            raise StateConflict(f"version {version} is in force already")
        if replaces is not None and now != replaces:
            raise StateConflict(f"version {now} was adopted in the meantime")
        row = {
            "version": version,
            "person": person,
            "at": datetime.now(UTC),
            "reason": store.privacy.redacted(reason),
        }
        connection.execute(sa.insert(rule_adoptions).values(row))


def in_force(store: Store) -> RuleVersion | None:
    """The version adopted last; None before the first adoption."""
    with store.reading() as connection:
        newest = rule_versions.c.version == _NEWEST.scalar_subquery()
        return _version(connection, newest)


def find(store: Store, version: int) -> RuleVersion:
    """One version.

    Raises:
        NotFound: there is no such version.
    """
    with store.reading() as connection:
        found = _version(connection, rule_versions.c.version == version)
    if found is None:
        raise NotFound("there is no such version of the rules")
    return found


def history(store: Store, limit: int = 100) -> list[VersionEntry]:
    """The newest versions with their adoptions, newest first."""
    table = rule_versions
    columns = (table.c[name] for name in ("version", "digest", "person", "at", "reason"))
    query = sa.select(*columns).order_by(table.c.version.desc()).limit(limit)
    adopted: dict[int, list[Adoption]] = {}
    with store.reading() as connection:
        now = _newest_version(connection)
        rows = connection.execute(query).mappings().all()
        adoptions = (
            sa.select(rule_adoptions)
            .where(rule_adoptions.c.version.in_([row["version"] for row in rows]))
            .order_by(rule_adoptions.c.id.desc())
        )
        for each in connection.execute(adoptions):
            adopted.setdefault(each.version, []).append(Adoption(each.person, each.at, each.reason))
    return [
        VersionEntry(
            **row,
            in_force=row["version"] == now,
            adoptions=adopted.get(row["version"], []),
        )
        for row in rows
    ]


_NEWEST: Final = sa.select(rule_adoptions.c.version).order_by(rule_adoptions.c.id.desc()).limit(1)


def _newest_version(connection: sa.Connection) -> int | None:
    found: int | None = connection.scalar(_NEWEST)
    return found


def _version(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> RuleVersion | None:
    table = rule_versions
    query = sa.select(table.c.version, table.c.digest, table.c.text).where(condition)
    row = connection.execute(query).mappings().first()
    return RuleVersion(**row) if row else None
