"""Ratings of turns and sessions by people.

A rating never changes a score. A person has one rating per turn and head; a new one replaces it.
Blind ratings, given in a calibration sample, are stored separately from those given with the
model's score visible, and are not shown on the session's page.

A person's comment belongs to their ratings of a turn, or of the whole session. It is about people,
so it is redacted and encrypted like the text of turns.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import sqlalchemy as sa

from stream_app.contracts.events import Role
from stream_app.sealing.envelope import seal_text
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.database.any_of import IDS, any_of
from stream_app.store.database.tables import people, rating_comments, ratings, session_scores, turns
from stream_app.store.keys.session_keys import place, unseal_or_none
from stream_app.store.sessions.scope import SCOPES, Scope
from stream_app.store.sessions.scored_turns import InvalidJudgement, NotFound, find_scored_turn
from stream_app.store.stream.repository import Store

SESSION_RATING: Final = "rating"
"""The head of a rating of a whole session, 1-5."""
MIN_RATING, MAX_RATING = 1, 5
_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:rapport:rating")
_COMMENT_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:rapport:rating-comment")


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judgement of a turn; ``value``: index of one of the head's labels.

    Without ``seq``, of the session: head ``rating``, 1-5.
    """

    session_id: str
    seq: int | None
    head: str
    value: int


@dataclass(frozen=True, slots=True)
class Rating:
    """A stored judgement; ``sample_id``: the calibration sample in which it was given, blind.

    ``comment``: the rater's on the turn or session, the same in each of their ratings of it.
    """

    rating_id: str
    session_id: str
    seq: int | None
    head: str
    value: int
    sample_id: str | None
    person: str
    at: datetime
    comment: str | None = None


_COLUMNS: Final = [column.name for column in ratings.c]


def rate(
    store: Store,
    scope: Scope,
    person: str,
    given: Sequence[Judgement],
    sample_id: str | None = None,
    comment: str | None = None,
) -> list[Rating]:
    """Store all judgements or none; each replaces this person's earlier one.

    Args:
        store: the store.
        scope: sessions that the person may see.
        person: the rater's account.
        given: judgements; with a comment, all of the same turn or session.
        sample_id: the calibration sample in which they are given, blind and without a comment.
        comment: replaces the person's comment; an empty one removes it, None keeps it.

    Raises:
        NotFound: a turn or session does not exist, or not in ``scope``.
        InvalidJudgement: the turn lacks the head, or the head lacks the value.
    """
    now = datetime.now(UTC)
    new = [
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
        rows = [{name: getattr(one, name) for name in _COLUMNS} for one in new]
        store.upsert(connection, ratings, rows, keep=False)
        if comment is not None:
            _write_comment(store, connection, new[0], store.privacy.redacted(comment))
        comments = _read_comments(store, connection, [one.session_id for one in given])
    return [_with_comment(one, comments) for one in new]


def of_session(store: Store, person: Person, session_id: str) -> list[Rating]:
    """Ratings of a session and its turns, oldest first, without blind ones.

    A counsellor gets their own ratings and those of supervisors, except about turns of other
    counsellors in the same session.
    """
    return of_sessions(store, person, [session_id])


def of_sessions(
    store: Store, person: Person, session_ids: Sequence[str], *, blind: bool = False
) -> list[Rating]:
    """Ratings of several sessions, as ``of_session`` returns them; ``blind``: blind ones, too."""
    given = {IDS: session_ids}
    if person.role is PersonRole.COUNSELLOR:
        query = _of_sessions(person.scope, blind=blind).where(_visible_to(person))
    else:
        query = _of_sessions(person.scope, blind=blind)
    with store.reading() as connection:
        found = [_rating(row) for row in connection.execute(query, given).mappings()]
        if not found:
            return []  # comments belong to ratings
        comments = _read_comments(store, connection, session_ids)
    return [_with_comment(one, comments) for one in found]


@lru_cache(maxsize=SCOPES)
def _of_sessions(scope: Scope, *, blind: bool) -> sa.Select[Any]:
    query = (
        sa.select(ratings)
        .where(
            any_of(ratings.c.session_id, IDS),
            *scope.conditions(ratings.c.session_id),
        )
        .order_by(ratings.c.session_id, ratings.c.at, ratings.c.rating_id)
    )
    return query if blind else query.where(ratings.c.sample_id.is_(None))


def _visible_to(counsellor: Person) -> sa.ColumnElement[bool]:
    supervisors = sa.select(people.c.name).where(people.c.role == PersonRole.SUPERVISOR.value)
    about_colleague = sa.exists().where(
        turns.c.session_id == ratings.c.session_id,
        turns.c.seq == ratings.c.seq,
        turns.c.role == Role.COUNSELLOR.value,
        turns.c.speaker != counsellor.speaker,
    )
    own = ratings.c.person == counsellor.name
    return own | (ratings.c.person.in_(supervisors) & ~about_colleague)


def withdraw(store: Store, person: str, rating_id: str) -> None:
    """Delete a person's rating that was not given in a calibration sample.

    Their comment goes with their last rating of the turn or session.

    Raises:
        NotFound: the person has no such rating.
    """
    own = ratings.c.person == person, ratings.c.sample_id.is_(None)
    with store.transaction() as connection:
        query = sa.select(ratings).where(ratings.c.rating_id == rating_id, *own)
        found = connection.execute(query).mappings().first()
        if found is None:
            raise NotFound("you have no such rating")
        connection.execute(sa.delete(ratings).where(ratings.c.rating_id == rating_id))
        others = sa.select(ratings.c.rating_id).where(
            ratings.c.session_id == found["session_id"],
            ratings.c.seq.is_not_distinct_from(found["seq"]),
            *own,
        )
        if connection.execute(others.limit(1)).first() is None:
            _delete_comment(connection, _rating(found))


def _write_comment(store: Store, connection: sa.Connection, about: Rating, comment: str) -> None:
    if not comment:
        return _delete_comment(connection, about)
    key = store.keys.get_or_create(connection, about.session_id, about.at)
    if key is None:
        raise NotFound("the session was erased in the meantime")
    comment_id = _comment_id(about)
    where = place(rating_comments.c.comment, about.session_id, comment_id)
    row = {
        "comment_id": comment_id,
        "session_id": about.session_id,
        "seq": about.seq,
        "comment": seal_text(key, comment, where),
        "person": about.person,
        "at": about.at,
    }
    store.upsert(connection, rating_comments, [row], keep=False)
    return None


def _delete_comment(connection: sa.Connection, about: Rating) -> None:
    table = rating_comments
    connection.execute(sa.delete(table).where(table.c.comment_id == _comment_id(about)))


def _read_comments(
    store: Store, connection: sa.Connection, session_ids: Sequence[str]
) -> dict[str, str | None]:
    """The comments on these sessions and their turns, by id."""
    table = rating_comments
    query = sa.select(table).where(any_of(table.c.session_id, IDS))
    found = connection.execute(query, {IDS: session_ids}).mappings().all()
    keys = store.keys.load(connection, sorted({row["session_id"] for row in found}))
    return {
        row["comment_id"]: unseal_or_none(
            keys.get(row["session_id"]),
            row["comment"],
            place(table.c.comment, row["session_id"], row["comment_id"]),
        )
        for row in found
    }


def _with_comment(one: Rating, comments: dict[str, str | None]) -> Rating:
    """Blind ratings have no comment: it was written with the model's score in view."""
    if one.sample_id is not None:
        return one
    return replace(one, comment=comments.get(_comment_id(one)))


def _check(connection: sa.Connection, scope: Scope, given: Judgement) -> None:
    if given.seq is not None:
        turn = find_scored_turn(connection, scope, given.session_id, given.seq)
        turn.require_head(given.head, given.value)
        return
    known = sa.select(session_scores.c.session_id).where(
        session_scores.c.session_id == given.session_id,
        *scope.conditions(session_scores.c.session_id),
    )
    if connection.execute(known.limit(1)).first() is None:
        raise NotFound("there is no such session")
    if given.head != SESSION_RATING:
        raise InvalidJudgement(
            f"sessions are rated by the head {SESSION_RATING}; other heads need a turn"
        )
    if not MIN_RATING <= given.value <= MAX_RATING:
        raise InvalidJudgement(f"a session's rating must be {MIN_RATING} to {MAX_RATING}")


def _id(given: Judgement, person: str, sample_id: str | None) -> uuid.UUID:
    parts = (given.session_id, given.seq, given.head, person, sample_id)
    return uuid.uuid5(_NAMESPACE, repr(parts))


def _comment_id(about: Rating) -> str:
    parts = (about.session_id, about.seq, about.person)
    return str(uuid.uuid5(_COMMENT_NAMESPACE, repr(parts)))


def _rating(row: sa.RowMapping) -> Rating:
    return Rating(**{name: row[name] for name in _COLUMNS})
