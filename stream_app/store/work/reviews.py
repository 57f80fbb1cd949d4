"""Reviews: a supervisor answers a scorecard about a session, comments on turns and signs off.

A review keeps the scorecard as it was when it was assigned. Until sign-off, answers can be changed;
then they are final. A double review is a pair of reviews of the same session by two people. Others
see a review when it is released: signed off, and in a pair when both are.

Comments are redacted and encrypted as the text of turns is.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.contracts.scores import SessionStatus
from stream_app.core.rules.scorecards import MEASURES, Scorecard, pack, unpack
from stream_app.sealing.envelope import seal_text
from stream_app.store.database.tables import (
    alerts,
    review_answers,
    review_comments,
    reviews,
    session_scores,
    sessions,
    turns,
)
from stream_app.store.keys.session_keys import place, unseal_or_none
from stream_app.store.sessions.scope import Scope
from stream_app.store.sessions.scored_turns import InvalidJudgement, NotFound, StateConflict
from stream_app.store.sessions.sessions import SessionCard
from stream_app.store.stream.repository import Store
from stream_app.store.work import assignments

MAX_FOUND: Final = 500
_COMMENT_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:rapport:review-comment")


class Origin(Enum):
    """How a session came to be reviewed: assigned by hand, or drawn at random or by risk."""

    HAND = "hand"
    RANDOM = "random"
    RISK = "risk"


@dataclass(frozen=True, slots=True)
class NewReview:
    """A review to assign; ``person`` assigns it to ``reviewer``."""

    session_id: str
    reviewer: str
    person: str
    scorecard: Scorecard
    due_at: datetime
    episode_id: str | None = None
    origin: Origin = Origin.HAND
    pair_id: str | None = None


@dataclass(frozen=True, slots=True)
class Review:
    """An assigned review. ``released``: others may see it; see the module."""

    review_id: str
    session_id: str
    episode_id: str | None
    reviewer: str
    person: str
    origin: Origin
    pair_id: str | None
    scorecard: Scorecard
    at: datetime
    due_at: datetime
    signed_at: datetime | None
    released: bool

    @property
    def double(self) -> bool:
        """Whether somebody else reviews the session independently."""
        return self.pair_id is not None


@dataclass(frozen=True, slots=True)
class Answer:
    """``value``: the person's answer; ``auto``: what the scores gave when it was saved."""

    value: int
    auto: int | None


@dataclass(frozen=True, slots=True)
class ReviewComment:
    """A comment on a turn."""

    seq: int
    person: str
    comment: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Content:
    """Answers by criterion, and comments in the order of turns."""

    answers: dict[str, Answer] = field(default_factory=dict)
    comments: list[ReviewComment] = field(default_factory=list)

    @property
    def values(self) -> dict[str, int]:
        """The person's answers."""
        return {name: answer.value for name, answer in self.answers.items()}


def assign(store: Store, new: Sequence[NewReview]) -> list[str]:
    """Store reviews, all or none; return their ids.

    Raises:
        StateConflict: consent was not given or was withdrawn, or the person already has an open
            review of the session.
        NotFound: the alert does not belong to the session.
    """
    now = datetime.now(UTC)
    made = []
    with store.transaction() as connection:
        for one in new:
            _check_new(connection, one)
            row = {
                "review_id": str(uuid.uuid4()),
                "session_id": one.session_id,
                "episode_id": one.episode_id,
                "reviewer": one.reviewer,
                "person": one.person,
                "origin": one.origin.value,
                "pair_id": one.pair_id,
                "scorecard": pack(one.scorecard),
                "at": now,
                "due_at": one.due_at,
                "signed_at": None,
            }
            connection.execute(sa.insert(reviews).values(row))
            made.append(str(row["review_id"]))
    return made


def one(store: Store, scope: Scope, review_id: str) -> Review:
    """One review.

    Raises:
        NotFound: it does not exist in ``scope``.
    """
    found = _find(store, scope, [reviews.c.review_id == review_id], 1)
    if not found:
        raise NotFound("there is no such review")
    return found[0]


def find(
    store: Store,
    scope: Scope,
    *,
    reviewer: str | None = None,
    session_id: str | None = None,
    signed: bool | None = None,
    limit: int = MAX_FOUND,
) -> list[Review]:
    """Reviews in the order of their due times; signed ones: newest first."""
    conditions: list[sa.ColumnElement[bool]] = []
    if reviewer is not None:
        conditions.append(reviews.c.reviewer == reviewer)
    if session_id is not None:
        conditions.append(reviews.c.session_id == session_id)
    if signed is not None:
        is_open = reviews.c.signed_at.is_(None)
        conditions.append(~is_open if signed else is_open)
    return _find(store, scope, conditions, limit, newest=bool(signed))


def select_open(scope: Scope) -> sa.Select[int]:
    """The number of a person's reviews that are not signed off; the parameter is ``given_to``."""
    return (
        sa.select(sa.func.count())
        .select_from(reviews)
        .where(
            reviews.c.reviewer == sa.bindparam("given_to"),
            reviews.c.signed_at.is_(None),
            *scope.conditions(reviews.c.session_id),
        )
    )


def candidates(store: Store, team: str, since: datetime) -> dict[str, float | None]:
    """A team's ended sessions to draw from: not reviewed, with text and consent; with their risk.

    ``since``: of the last activity.
    """
    score, session = session_scores, sessions
    reviewed = sa.exists().where(reviews.c.session_id == score.c.session_id)
    readable = sa.exists().where(
        turns.c.session_id == score.c.session_id, turns.c.text.is_not(None)
    )
    query = (
        sa.select(score.c.session_id, score.c.low_empathy_risk)
        .join(session, session.c.session_id == score.c.session_id)
        .where(
            session.c.team == team,
            ~session.c.withdrawn,
            session.c.consent.is_not(sa.false()),
            score.c.status == SessionStatus.CLOSED.value,
            score.c.last_activity_at >= since,
            ~reviewed,
            readable,
            *Scope(team=team).conditions(score.c.session_id),
        )
        .order_by(score.c.session_id, score.c.last_activity_at, score.c.bundle)
    )
    with store.reading() as connection:  # of several bundles, the last active one counts
        return {row.session_id: row.low_empathy_risk for row in connection.execute(query)}


def content(store: Store, review: Review) -> Content:
    """The answers and comments of a review; check that the reader may see them."""
    given, written = review_answers, review_comments
    of_review = sa.select(given).where(given.c.review_id == review.review_id)
    comments = sa.select(written).where(written.c.review_id == review.review_id)
    with store.reading() as connection:
        answers = {
            row["criterion"]: Answer(row["value"], row["auto_value"])
            for row in connection.execute(of_review).mappings()
        }
        found = connection.execute(comments.order_by(written.c.seq)).mappings().all()
        key = store.keys.load(connection, [review.session_id]).get(review.session_id)
    return Content(
        answers,
        [
            ReviewComment(
                row["seq"],
                row["person"],
                unseal_or_none(key, row["comment"], _place(review, row["comment_id"])) or "",
                row["at"],
            )
            for row in found
        ],
    )


def save_answers(
    store: Store, review: Review, values: Mapping[str, int], auto: Mapping[str, int]
) -> None:
    """Replace the answers; ``auto``: what the scores give now, stored with them.

    Raises:
        StateConflict: the review is signed off.
        InvalidJudgement: there is no such criterion or step.
    """
    now = datetime.now(UTC)
    with store.transaction() as connection:
        _lock_open(connection, review)
        _save(connection, review, values, auto, now)


def sign_off(
    store: Store, review: Review, values: Mapping[str, int], auto: Mapping[str, int]
) -> None:
    """Replace the answers and make the review final.

    Raises:
        StateConflict: the review is signed off already.
        InvalidJudgement: an answer is missing, or there is no such criterion or step.
    """
    now = datetime.now(UTC)
    missing = review.scorecard.missing(values)
    if missing:
        raise InvalidJudgement(f"an answer is missing: {', '.join(missing)}")
    with store.transaction() as connection:
        _lock_open(connection, review)
        _save(connection, review, values, auto, now)
        this = reviews.c.review_id == review.review_id
        connection.execute(sa.update(reviews).where(this).values(signed_at=now))


def comment(store: Store, review: Review, seq: int, text: str) -> None:
    """Comment on a turn, replacing the earlier comment; an empty one removes it.

    Raises:
        StateConflict: the review is signed off.
        NotFound: there is no such turn, or the session was erased in the meantime.
    """
    now, table = datetime.now(UTC), review_comments
    comment_id = str(uuid.uuid5(_COMMENT_NAMESPACE, repr((review.review_id, seq))))
    with store.transaction() as connection:
        _lock_open(connection, review)
        known = sa.select(turns.c.seq).where(
            turns.c.session_id == review.session_id, turns.c.seq == seq
        )
        if connection.scalar(known) is None:
            raise NotFound("there is no such turn")
        if not text:
            connection.execute(sa.delete(table).where(table.c.comment_id == comment_id))
            return
        key = store.keys.get_or_create(connection, review.session_id, now)
        if key is None:
            raise NotFound("the session was erased in the meantime")
        row = {
            "comment_id": comment_id,
            "review_id": review.review_id,
            "session_id": review.session_id,
            "seq": seq,
            "comment": seal_text(key, store.privacy.redacted(text), _place(review, comment_id)),
            "person": review.reviewer,
            "at": now,
        }
        store.upsert(connection, table, [row], keep=False)


def withdraw(store: Store, review: Review) -> None:
    """Delete a review that is not signed off, with its answers and comments.

    The other half of a double review goes on as a review by one person.

    Raises:
        StateConflict: the review is signed off.
        NotFound: the review was erased or withdrawn in the meantime.
    """
    with store.transaction() as connection:
        _lock_open(connection, review)
        for table in (review_answers, review_comments, reviews):
            connection.execute(sa.delete(table).where(table.c.review_id == review.review_id))
        if review.pair_id is not None:
            other = reviews.c.pair_id == review.pair_id
            connection.execute(sa.update(reviews).where(other).values(pair_id=None))


Pair = tuple[Scorecard, dict[str, tuple[int, int]]]
"""A double review: the scorecard, and both answers by criterion."""


def released_pairs(store: Store, scope: Scope) -> list[Pair]:
    """Double reviews that both people have signed off."""
    pairs: dict[str, list[Review]] = {}
    for review in _find(store, scope, [reviews.c.pair_id.is_not(None)], None):
        if review.released and review.pair_id is not None:
            pairs.setdefault(review.pair_id, []).append(review)
    both = {review.review_id: review for found in pairs.values() for review in found}
    values: dict[str, dict[str, int]] = {review_id: {} for review_id in both}
    table = review_answers
    query = (
        sa.select(table.c.review_id, table.c.criterion, table.c.value)
        .join(reviews, reviews.c.review_id == table.c.review_id)
        .where(reviews.c.pair_id.is_not(None))
    )
    with store.reading() as connection:
        for review_id, criterion, value in connection.execute(query):
            if review_id in values:
                values[review_id][criterion] = value
    found = []
    for some in pairs.values():
        if len(some) == 2:
            first, second = (values[review.review_id] for review in some)
            common = {name: (first[name], second[name]) for name in first if name in second}
            found.append((some[0].scorecard, common))
    return found


def measures_of(card: SessionCard) -> dict[str, float]:
    """The measures of a session that can fill a scorecard, without unknown ones."""
    found = {
        **{name: getattr(card, name, None) for name in MEASURES},
        **{f"{name}_mean": each.mean for name, each in card.mechanisms.items()},
    }
    return {name: float(value) for name, value in found.items() if value is not None}


def _check_new(connection: Connection, new: NewReview) -> None:
    if not assignments.may_be_analysed(connection, new.session_id, lock=True):
        raise StateConflict(
            "consent was not given or was withdrawn: this session cannot be reviewed"
        )
    mine = sa.select(reviews.c.review_id).where(
        reviews.c.session_id == new.session_id,
        reviews.c.reviewer == new.reviewer,
        reviews.c.signed_at.is_(None),
    )
    if connection.scalar(mine) is not None:
        raise StateConflict(f"{new.reviewer} already has an open review of this session")
    if new.episode_id is not None:
        raised = sa.select(alerts.c.alert_id).where(
            alerts.c.episode_id == new.episode_id, alerts.c.session_id == new.session_id
        )
        if connection.scalar(raised.limit(1)) is None:
            raise NotFound("this session has no such alert")


def _lock_open(connection: Connection, review: Review) -> None:
    query = sa.select(reviews.c.signed_at).where(reviews.c.review_id == review.review_id)
    found = connection.execute(query.with_for_update()).first()
    if found is None:
        raise NotFound("the review was erased or withdrawn in the meantime")
    if found.signed_at is not None:
        raise StateConflict("this review is signed off and cannot be changed")


def _save(
    connection: Connection,
    review: Review,
    values: Mapping[str, int],
    auto: Mapping[str, int],
    now: datetime,
) -> None:
    steps = {each.name: len(each.scale) for each in review.scorecard.criteria}
    for name, value in values.items():
        if name not in steps or not 0 <= value < steps[name]:
            raise InvalidJudgement("the scorecard has no such criterion or step")
    table = review_answers
    connection.execute(sa.delete(table).where(table.c.review_id == review.review_id))
    rows: list[dict[str, Any]] = [
        {
            "review_id": review.review_id,
            "criterion": name,
            "session_id": review.session_id,
            "value": value,
            "auto_value": auto.get(name),
            "at": now,
        }
        for name, value in values.items()
    ]
    if rows:
        connection.execute(sa.insert(table), rows)


def _find(
    store: Store,
    scope: Scope,
    conditions: Sequence[sa.ColumnElement[bool]],
    limit: int | None,
    *,
    newest: bool = False,
) -> list[Review]:
    other = reviews.alias("other_of_pair")
    waiting = sa.exists().where(other.c.pair_id == reviews.c.pair_id, other.c.signed_at.is_(None))
    order = (reviews.c.signed_at.desc(),) if newest else (reviews.c.due_at,)
    query = (
        sa.select(reviews, (reviews.c.signed_at.is_not(None) & ~waiting).label("released"))
        .where(*conditions, *scope.conditions(reviews.c.session_id))
        .order_by(*order, reviews.c.session_id, reviews.c.review_id)
        .limit(limit)
    )
    with store.reading() as connection:
        return [_review(row) for row in connection.execute(query).mappings()]


def _review(row: sa.RowMapping) -> Review:
    values = {name: row[name] for name in Review.__slots__}
    return Review(
        **{
            **values,
            "origin": Origin(row["origin"]),
            "scorecard": unpack(row["scorecard"]),
            "released": bool(row["released"]),
        }
    )


def _place(review: Review, comment_id: str) -> str:
    return place(review_comments.c.comment, review.session_id, comment_id)
