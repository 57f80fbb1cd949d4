"""Reviews of sessions by supervisors, with scorecards; agreement of double reviews."""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from stream_app.core.rules.scorecards import pack
from stream_app.findings import review_agreement
from stream_app.findings.review_agreement import CriterionAgreement
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.roles import Right
from stream_app.store.work import reviews
from stream_app.web.http.fields import MAX_SEQ, Comment, Identifier, Moment
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import ReportReader, Supervisor, needs
from stream_app.work import reviewing
from stream_app.work.reviewing import ReviewContent, ReviewRead

router = APIRouter(prefix="/reviews", tags=["reviews"])


class Assignment(BaseModel):
    """A review to assign."""

    model_config = ConfigDict(extra="forbid")

    session_id: Identifier
    reviewer: Annotated[
        Identifier, Field(description="Account of a supervisor who may read the session")
    ]
    due_at: Moment
    scorecard: Annotated[
        Identifier | None, Field(description="A name from `/reviews/scorecards`; null: the first")
    ] = None
    episode_id: Annotated[
        Identifier | None, Field(description="The session's alert that it is about")
    ] = None


class Answers(BaseModel):
    """The answers of a scorecard."""

    model_config = ConfigDict(extra="forbid")

    answers: Annotated[
        dict[Identifier, Annotated[int, Field(ge=0, le=9)]],
        Field(description="By criterion, the index of a step of its scale; replaces all earlier"),
    ]
    sign_off: Annotated[
        bool, Field(description="Make the review final; every criterion needs an answer")
    ] = False


class TurnComment(BaseModel):
    """A comment on a turn."""

    model_config = ConfigDict(extra="forbid")

    seq: Annotated[int, Field(ge=0, le=MAX_SEQ, description="The turn")]
    comment: Annotated[
        Comment, Field(description="Replaces your comment on the turn; empty removes it")
    ]


@dataclass(frozen=True, slots=True)
class ScorecardRead:
    """A scorecard of the file in force; `criteria` as in the file."""

    name: str
    title: str
    criteria: list[dict[str, Any]]


@router.post("", status_code=201)
@needs(Right.ACT)
def assign_review(services: ServicesDep, person: Supervisor, new: Assignment) -> ReviewRead:
    """Assign the review of a session to yourself or to another supervisor of it. Audited."""
    with as_http_errors():
        return reviewing.assign(
            services,
            person,
            new.session_id,
            new.reviewer,
            new.due_at,
            new.scorecard,
            new.episode_id,
        )


@router.get("")
@needs(Right.READ_SCORES)
def list_reviews(
    services: ServicesDep,
    person: Supervisor,
    reviewer: Annotated[Identifier | None, Query(description="Only this person's")] = None,
    session: Annotated[Identifier | None, Query(description="Only of this session")] = None,
    signed: Annotated[
        bool | None, Query(description="true: only signed-off reviews; false: only open ones")
    ] = None,
) -> list[ReviewRead]:
    """At most 500 reviews of your sessions, by due time; signed-off ones newest first."""
    services.accesses.record(person.name, AuditAction.READ_SCORES, "reviews", session)
    found = reviews.find(
        services.store, person.scope, reviewer=reviewer, session_id=session, signed=signed
    )
    return [reviewing.read_review(review) for review in found]


@router.get("/scorecards")
@needs(Right.READ_SCORES)
def list_scorecards(services: ServicesDep, person: Supervisor) -> list[ScorecardRead]:  # noqa: ARG001  # for its role
    """The scorecards for new reviews; the first is the default."""
    return [
        ScorecardRead(card.name, card.title, list(pack(card)["criteria"]))
        for card in services.scorecards.values()
    ]


@router.get("/agreement")
@needs(Right.READ_SCORES)
def agreement_of_reviews(services: ServicesDep, person: ReportReader) -> list[CriterionAgreement]:
    """Agreement of two people by criterion, over released double reviews.

    Cohen's kappa with quadratic weights and its 95 % interval; none below 20 pairs.
    """
    services.accesses.record(person.name, AuditAction.READ_STATISTICS, "agreement of reviews")
    return review_agreement.of_double_reviews(services.store, person.scope)


@router.get("/{review_id}")
@needs(Right.READ_TEXT)
def one_review(services: ServicesDep, person: Supervisor, review_id: Identifier) -> ReviewContent:
    """One review. Answers and comments are empty until it is released, except for its reviewer."""
    with as_http_errors():
        found = reviewing.read(services, person, review_id)
    services.accesses.record(
        person.name, AuditAction.READ_SCORES, "review", found.review.session_id
    )
    return found


@router.put("/{review_id}/answers")
@needs(Right.ACT, Right.READ_TEXT)
def answer_review(
    services: ServicesDep, person: Supervisor, review_id: Identifier, given: Answers
) -> ReviewContent:
    """Answer the scorecard of your review, and sign it off if you are done."""
    with as_http_errors():
        reviewing.save(services, person, review_id, given.answers, sign=given.sign_off)
        return reviewing.read(services, person, review_id)


@router.put("/{review_id}/comments")
@needs(Right.ACT, Right.READ_TEXT)
def comment_in_review(
    services: ServicesDep, person: Supervisor, review_id: Identifier, new: TurnComment
) -> ReviewContent:
    """Comment on a turn in your review. The comment is redacted like the turn's text."""
    with as_http_errors():
        reviewing.comment(services, person, review_id, new.seq, new.comment.strip())
        return reviewing.read(services, person, review_id)


@router.delete("/{review_id}", status_code=204)
@needs(Right.ACT)
def withdraw_review(services: ServicesDep, person: Supervisor, review_id: Identifier) -> None:
    """Withdraw an open review that you assigned or were given, with its answers. Audited."""
    with as_http_errors():
        reviewing.withdraw(services, person, review_id)
