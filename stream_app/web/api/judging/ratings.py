"""Human ratings of turns and sessions. They never change the model's scores."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, ConfigDict, Field

from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.roles import PersonRole, Right
from stream_app.store.sessions.scored_turns import InvalidJudgement
from stream_app.store.work import calibration_samples, ratings
from stream_app.store.work.ratings import Judgement, Rating
from stream_app.web.http.fields import MAX_SEQ, Comment, Identifier
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import Reader, needs

router = APIRouter(prefix="/ratings", tags=["ratings"])


class NewRating(BaseModel):
    """A person's rating of one head of a turn, or of a session."""

    model_config = ConfigDict(extra="forbid")

    session_id: Identifier
    seq: Annotated[
        int | None, Field(ge=0, le=MAX_SEQ, description="The turn; null to rate the session")
    ] = None
    head: Annotated[
        Identifier, Field(description="A head of the bundle, or `rating` for a session")
    ]
    value: Annotated[
        int,
        Field(
            ge=0,
            le=1000,
            description="Levels 0-2; for other heads the index of the label in the bundle's "
            "manifest; 1-5 for a session",
        ),
    ]
    comment: Annotated[
        Comment | None,
        Field(
            description="Your comment on the turn or session, redacted like its text; empty "
            "removes it, null keeps it. Its counsellor may read it. Not with `sample_id`",
        ),
    ] = None
    sample_id: Annotated[
        Identifier | None, Field(description="The calibration sample it belongs to (supervisors)")
    ] = None


@router.post("")
@needs(Right.ACT)
def give_rating(services: ServicesDep, person: Reader, new: NewRating) -> Rating:
    """Rate a head, replacing your earlier rating of it.

    Counsellors' ratings of their own sessions are stored, but not used for agreement figures.
    """
    given = [Judgement(new.session_id, new.seq, new.head, new.value)]
    with as_http_errors():
        if new.sample_id is None:
            comment = None if new.comment is None else new.comment.strip()
            rated = ratings.rate(services.store, person.scope, person.name, given, comment=comment)
            return rated[0]
        if new.comment is not None:
            raise InvalidJudgement("ratings of calibration samples have no comment")
        if person.role is not PersonRole.SUPERVISOR:
            raise HTTPException(403, "only supervisors rate calibration samples")
        return calibration_samples.rate(services.store, person, new.sample_id, given)[0]


@router.get("")
@needs(Right.READ_SCORES)
def list_ratings(
    services: ServicesDep,
    person: Reader,
    session: Annotated[Identifier, Query(description="Ratings of this session")],
) -> list[Rating]:
    """Ratings of a session and its turns, oldest first, without blind ratings.

    Comments are left out for tokens that may not read transcripts.
    """
    services.accesses.record(person.name, AuditAction.READ_SCORES, "ratings", session)
    found = ratings.of_session(services.store, person, session)
    if person.reads_transcripts:
        return found
    return [replace(each, comment=None) for each in found]


@router.delete("/{rating_id}", status_code=204)
@needs(Right.ACT)
def take_back_rating(services: ServicesDep, person: Reader, rating_id: Identifier) -> None:
    """Delete one of your ratings. Ratings of calibration samples cannot be deleted."""
    with as_http_errors():
        ratings.withdraw(services.store, person.name, rating_id)
