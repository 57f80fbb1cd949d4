"""Proposals: what a language model answered to the asked questions of a session.

A proposal is kept only while the consent of its session permits a language model to read it. It is
no judgement and no score: nothing but the page of a review reads it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from stream_app.contracts.events import ConsentPurpose
from stream_app.contracts.scores import SessionStatus
from stream_app.core.rules.proposals import Dropped, Proposal, question_key
from stream_app.core.rules.scorecards import Criterion, unpack
from stream_app.store.database.tables import (
    proposals,
    review_answers,
    reviews,
    session_scores,
    sessions,
    turns,
)
from stream_app.store.sessions import consents
from stream_app.store.sessions.scope import ALL_SESSIONS, Scope
from stream_app.store.stream.repository import Store
from stream_app.store.work import assignments

PURPOSE = ConsentPurpose.THIRD_PARTY_PROCESSING


@dataclass(frozen=True, slots=True)
class StoredProposal:
    """A proposal, and which model made it when."""

    session_id: str
    model: str
    proposal: Proposal
    at: datetime


@dataclass(frozen=True, slots=True)
class Answered:
    """A person's answer to a question about a session; ``blind``: given without the scores."""

    session_id: str
    value: int
    signed_at: datetime
    blind: bool


def may_be_asked(store: Store, session_id: str) -> bool:
    """Whether the consent of a session permits a language model to read it."""
    return bool(consents.permitting(store, PURPOSE, session_id))


def waiting(store: Store, questions: Sequence[Criterion], model: str, since: datetime) -> list[str]:
    """Ended sessions since then that have text and consent, and a question without an answer."""
    if not questions:
        return []
    keys = [question_key(each) for each in questions]
    score = session_scores
    answered = (
        sa.select(sa.func.count())
        .where(
            proposals.c.session_id == score.c.session_id,
            proposals.c.model == model,
            proposals.c.question_key.in_(keys),
        )
        .scalar_subquery()
    )
    readable = sa.exists().where(
        turns.c.session_id == score.c.session_id, turns.c.text.is_not(None)
    )
    query = (
        sa.select(score.c.session_id)
        .distinct()
        .where(
            score.c.status == SessionStatus.CLOSED.value,
            score.c.last_activity_at >= since,
            readable,
            answered < len(set(keys)),
            *ALL_SESSIONS.conditions(score.c.session_id),
        )
        .order_by(score.c.session_id)
    )
    with store.reading() as connection:
        permitted = set(consents.permitted(connection, PURPOSE))
        return [name for name in connection.scalars(query) if name in permitted]


def unanswered(
    store: Store, session_id: str, questions: Sequence[Criterion], model: str
) -> list[Criterion]:
    """The questions that this model was not asked about the session yet."""
    query = sa.select(proposals.c.question_key).where(
        proposals.c.session_id == session_id, proposals.c.model == model
    )
    with store.reading() as connection:
        known = set(connection.scalars(query))
    return [each for each in questions if question_key(each) not in known]


def keep(
    store: Store, session_id: str, criterion: Criterion, model: str, found: Proposal | Dropped
) -> bool:
    """Store an answer, unless the session was erased or its consent changed in the meantime."""
    proposed = found if isinstance(found, Proposal) else None
    row: dict[str, Any] = {
        "session_id": session_id,
        "question_key": question_key(criterion),
        "model": model,
        "question": criterion.question,
        "answer": criterion.scale[proposed.value] if proposed else None,
        "value": proposed.value if proposed else None,
        "seq": proposed.seq if proposed else None,
        "quote_start": proposed.start if proposed else None,
        "quote_end": proposed.end if proposed else None,
        "dropped": found.value if isinstance(found, Dropped) else None,
        "at": datetime.now(UTC),
    }
    with store.transaction() as connection:
        if not assignments.may_be_analysed(connection, session_id, lock=True):
            return False
        if not consents.permitted(connection, PURPOSE, session_id):
            return False
        store.upsert(connection, proposals, [row], keep=True)
    return True


def of_session(store: Store, scope: Scope, session_id: str) -> dict[str, StoredProposal]:
    """The newest proposal to each question, by its key; none without consent to asking."""
    query = (
        sa.select(proposals)
        .where(
            proposals.c.session_id == session_id,
            proposals.c.value.is_not(None),
            *scope.conditions(proposals.c.session_id),
        )
        .order_by(proposals.c.at, proposals.c.model)
    )
    with store.reading() as connection:
        if not consents.permitted(connection, PURPOSE, session_id):
            return {}
        return {row["question_key"]: _stored(row) for row in connection.execute(query).mappings()}


def of_question(
    store: Store, scope: Scope, criterion: Criterion, model: str
) -> dict[str, StoredProposal]:
    """A model's proposals to a question, by session."""
    query = sa.select(proposals).where(
        proposals.c.question_key == question_key(criterion),
        proposals.c.model == model,
        proposals.c.value.is_not(None),
        *scope.conditions(proposals.c.session_id),
    )
    with store.reading() as connection:
        return {row["session_id"]: _stored(row) for row in connection.execute(query).mappings()}


def models(store: Store, criterion: Criterion) -> list[str]:
    """The models that have made proposals to a question."""
    query = (
        sa.select(proposals.c.model)
        .distinct()
        .where(proposals.c.question_key == question_key(criterion), proposals.c.value.is_not(None))
        .order_by(proposals.c.model)
    )
    with store.reading() as connection:
        return list(connection.scalars(query))


def by_people(store: Store, scope: Scope, criterion: Criterion) -> list[Answered]:
    """People's answers to a question: of each session, that of the review signed off first.

    Of a double review, only when both have signed off.
    """
    other = reviews.alias("other_of_pair")
    open_half = sa.exists().where(other.c.pair_id == reviews.c.pair_id, other.c.signed_at.is_(None))
    query = (
        sa.select(
            reviews.c.session_id,
            reviews.c.scorecard,
            reviews.c.signed_at,
            reviews.c.pair_id,
            review_answers.c.criterion,
            review_answers.c.value,
        )
        .join(review_answers, review_answers.c.review_id == reviews.c.review_id)
        .join(sessions, sessions.c.session_id == reviews.c.session_id)
        .where(
            reviews.c.signed_at.is_not(None),
            ~open_half,
            *scope.conditions(reviews.c.session_id),
        )
        .order_by(reviews.c.signed_at, reviews.c.review_id)
    )
    wanted = question_key(criterion)
    found: dict[str, Answered] = {}
    with store.reading() as connection:
        for row in connection.execute(query):
            named = {each.name: each for each in unpack(row.scorecard).criteria}
            one = named.get(row.criterion)
            if one is not None and question_key(one) == wanted:
                answer = Answered(row.session_id, row.value, row.signed_at, row.pair_id is not None)
                found.setdefault(row.session_id, answer)
    return list(found.values())


def _stored(row: sa.RowMapping) -> StoredProposal:
    place = Proposal(row["value"], row["seq"], row["quote_start"], row["quote_end"])
    return StoredProposal(row["session_id"], row["model"], place, row["at"])
