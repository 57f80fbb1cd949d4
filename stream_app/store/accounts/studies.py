"""Approved studies: until when which accounts may export redacted text.

Approval is given outside the service; an administrator enters the study's id and its end.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from stream_app.errors import RapportError
from stream_app.store.accounts.people import People, PersonError
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.database.tables import studies
from stream_app.store.stream.repository import Store


class StudyRefused(RapportError):
    """The study does not exist, has ended, or is not this person's."""


@dataclass(frozen=True, slots=True)
class Study:
    """A person's part in a study. ``until``: exports are refused from then on."""

    study_id: str
    person: str
    until: datetime
    at: datetime


def admit(store: Store, study_id: str, person: str, until: datetime) -> Study:
    """Let an account of the role ``study`` export text for a study; replaces an earlier end.

    Raises:
        PersonError: the account does not exist or has another role.
        StudyRefused: the end has passed.
    """
    now = datetime.now(UTC)
    found = People(store).find(person)
    if found is None:
        raise PersonError(f"there is no account {person}")
    if found.role is not PersonRole.STUDY:
        raise PersonError(f"{person} has the role {found.role.value}; a study needs the role study")
    if until <= now:
        raise StudyRefused(f"{until:%Y-%m-%d} has passed")
    study = Study(study_id, person, until, now)
    row = {name: getattr(study, name) for name in Study.__slots__}
    with store.transaction() as connection:
        store.upsert(connection, studies, [row], keep=False)
    return study


def end(store: Store, study_id: str) -> int:
    """End a study for all its accounts; returns their number.

    Raises:
        StudyRefused: no account is in this study.
    """
    query = sa.update(studies).where(studies.c.study_id == study_id)
    with store.transaction() as connection:
        count = connection.execute(query.values(until=datetime.now(UTC))).rowcount
    if not count:
        raise StudyRefused(f"there is no study {study_id}")
    return count


def every(store: Store) -> list[Study]:
    """All studies with their accounts, ended ones too."""
    query = sa.select(studies).order_by(studies.c.study_id, studies.c.person)
    with store.reading() as connection:
        return [Study(**row) for row in connection.execute(query).mappings()]


def require(store: Store, person: str, study_id: str | None) -> Study:
    """The person's part in this study, if it has not ended.

    Raises:
        StudyRefused: it has, or the person is not in this study, or none is named.
    """
    if study_id is None:
        raise StudyRefused("name the study that this export is for")
    query = sa.select(studies).where(studies.c.study_id == study_id, studies.c.person == person)
    with store.reading() as connection:
        row = connection.execute(query).mappings().first()
    if row is None:
        raise StudyRefused("this account is not in a study with this id")
    if row["until"] <= datetime.now(UTC):
        raise StudyRefused(f"the study {study_id} ended on {row['until']:%Y-%m-%d}")
    return Study(**row)
