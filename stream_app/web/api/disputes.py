"""Disputes: a counsellor contests a score of an own turn, a supervisor answers."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from stream_app.store import disputes
from stream_app.store.disputes import Decision, Dispute
from stream_app.store.people import Person, PersonRole
from stream_app.web.api.fields import Identifier, Note
from stream_app.web.api.ratings import LARGEST_SEQ
from stream_app.web.auth import Reader, Supervisor, allowed
from stream_app.web.refused import as_http
from stream_app.web.services import Wired

router = APIRouter(prefix="/disputes", tags=["disputes"])
Counsellor = Annotated[Person, Depends(allowed(PersonRole.COUNSELLOR))]


class NewDispute(BaseModel):
    """Which score is contested, and why."""

    model_config = ConfigDict(extra="forbid")

    session_id: Identifier
    seq: Annotated[int, Field(ge=0, le=LARGEST_SEQ)]
    head: Identifier
    proposed: Annotated[
        int | None, Field(ge=0, le=1000, description="What it should be; null leaves it open")
    ] = None
    note: Note


class Answer(BaseModel):
    """What a supervisor says to a dispute."""

    model_config = ConfigDict(extra="forbid")

    decision: Decision
    answer: Note


@router.post("")
def dispute(services: Wired, person: Counsellor, new: NewDispute) -> Dispute:
    """Contest what the model said of an own turn; its score stays as it is."""
    with as_http():
        return disputes.contest(
            services.store, person, new.session_id, new.seq, new.head, new.proposed, new.note
        )


@router.get("")
def list_disputes(
    services: Wired,
    person: Reader,
    session: Annotated[Identifier | None, Query(description="Only of this session")] = None,
    waiting: Annotated[
        bool | None, Query(description="Only those without an answer, or only answered ones")
    ] = None,
) -> list[Dispute]:
    """Disputes, the newest first, at most 500; a counsellor sees the own ones."""
    own = person.name if person.role is PersonRole.COUNSELLOR else None
    return disputes.find(
        services.store, person.scope, session_id=session, person=own, waiting=waiting
    )


@router.post("/{dispute_id}/decide")
def answer_dispute(
    services: Wired, person: Supervisor, dispute_id: Identifier, answer: Answer
) -> Dispute:
    """Answer a dispute; this is final."""
    with as_http():
        return disputes.decide(services.store, person, dispute_id, answer.decision, answer.answer)
