"""What people say of a turn or a session, beside what the model says.

A rating never touches a score. A person has one rating for each turn and head, and gives it anew by
replacing it; what it was before is not kept. Ratings given blind, in a sample, are kept apart from
those given with the model's score in view, and do not stand on the session's page.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa

from stream_app.contracts.events import Role
from stream_app.store.judged import DoesNotFit, NotThere, judged_turn
from stream_app.store.people import Person, PersonRole
from stream_app.store.reading.scope import Scope
from stream_app.store.repository import Store
from stream_app.store.tables import people, ratings, session_scores, turns

SESSION_RATING: Final = "rating"
"""The head of a rating of a whole session, 1-5."""
WORST, BEST = 1, 5
_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:rapport:rating")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What somebody says: ``value`` is the index of one of the head's labels.

    Without ``seq`` it is about the session: head ``rating``, 1-5.
    """

    session_id: str
    seq: int | None
    head: str
    value: int


@dataclass(frozen=True, slots=True)
class Rating:
    """A judgement with who and when; ``sample_id``: given blind, in this sample."""

    rating_id: str
    session_id: str
    seq: int | None
    head: str
    value: int
    sample_id: str | None
    person: str
    at: datetime


def rate(
    store: Store,
    scope: Scope,
    person: str,
    given: Sequence[Judgement],
    sample_id: str | None = None,
) -> list[Rating]:
    """Keep these judgements, all or none; each replaces this person's earlier one.

    Raises:
        NotThere: no such turn or session may be seen.
        DoesNotFit: a head that the turn does not have, or a value that the head does not have.
    """
    now = datetime.now(UTC)
    made = [
        Rating(
            str(_id(one, person, sample_id)),
            one.session_id,
            one.seq,
            one.head,
            one.value,
            sample_id,
            person,
            now,
        )
        for one in given
    ]
    with store.transaction() as connection:
        for one in given:
            _check(connection, scope, one)
        rows = [{name: getattr(one, name) for name in Rating.__slots__} for one in made]
        store.upsert(connection, ratings, rows, keep=False)
    return made


def of_session(store: Store, person: Person, session_id: str) -> list[Rating]:
    """Ratings of a session and its turns, oldest first; blind ones are not among them.

    A counsellor who shared the session gets the own ones and those of supervisors, except about a
    colleague's turns.
    """
    query = (
        sa.select(ratings)
        .where(
            ratings.c.session_id == session_id,
            ratings.c.sample_id.is_(None),
            *person.scope.conditions(ratings.c.session_id),
        )
        .order_by(ratings.c.at, ratings.c.rating_id)
    )
    if person.role is PersonRole.COUNSELLOR:
        query = query.where(_is_for(person))
    with store.reading() as connection:
        return [_rating(row) for row in connection.execute(query).mappings()]


def _is_for(counsellor: Person) -> sa.ColumnElement[bool]:
    supervisors = sa.select(people.c.name).where(people.c.role == PersonRole.SUPERVISOR.value)
    about_colleague = sa.exists().where(
        turns.c.session_id == ratings.c.session_id,
        turns.c.seq == ratings.c.seq,
        turns.c.role == Role.COUNSELLOR.value,
        turns.c.speaker != counsellor.speaker,
    )
    own = ratings.c.person == counsellor.name
    return own | (ratings.c.person.in_(supervisors) & ~about_colleague)


def take_back(store: Store, person: str, rating_id: str) -> None:
    """Delete an own rating that was not given in a sample.

    Raises:
        NotThere: this person has no such rating.
    """
    own = sa.delete(ratings).where(
        ratings.c.rating_id == rating_id,
        ratings.c.person == person,
        ratings.c.sample_id.is_(None),
    )
    with store.transaction() as connection:
        if connection.execute(own).rowcount == 0:
            raise NotThere("you have no such rating")


def _check(connection: sa.Connection, scope: Scope, given: Judgement) -> None:
    if given.seq is not None:
        turn = judged_turn(connection, scope, given.session_id, given.seq)
        turn.head(given.head, given.value)
        return
    known = sa.select(session_scores.c.session_id).where(
        session_scores.c.session_id == given.session_id,
        *scope.conditions(session_scores.c.session_id),
    )
    if connection.execute(known.limit(1)).first() is None:
        raise NotThere("there is no such session")
    if given.head != SESSION_RATING:
        raise DoesNotFit(f"a session is rated by the head {SESSION_RATING}; others need a turn")
    if not WORST <= given.value <= BEST:
        raise DoesNotFit(f"a session is rated from {WORST} to {BEST}")


def _id(given: Judgement, person: str, sample_id: str | None) -> uuid.UUID:
    parts = (given.session_id, given.seq, given.head, person, sample_id)
    return uuid.uuid5(_NAMESPACE, repr(parts))


def _rating(row: sa.RowMapping) -> Rating:
    return Rating(**{name: row[name] for name in Rating.__slots__})
