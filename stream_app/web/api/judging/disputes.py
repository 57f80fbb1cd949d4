"""Disputes: counsellors contest scores of their own turns, supervisors answer."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.roles import PersonRole, Right
from stream_app.store.work import disputes
from stream_app.store.work.disputes import Decision, Dispute
from stream_app.web.http.fields import MAX_SEQ, Identifier, Note
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import Counsellor, Reader, Supervisor, needs
from stream_app.work import acting

router = APIRouter(prefix="/disputes", tags=["disputes"])


class NewDispute(BaseModel):
    """The contested score, and why it is contested."""

    model_config = ConfigDict(extra="forbid")

    session_id: Identifier
    seq: Annotated[int, Field(ge=0, le=MAX_SEQ)]
    head: Identifier
    proposed: Annotated[
        int | None, Field(ge=0, le=1000, description="The correct value; null for none proposed")
    ] = None
    note: Note


class Answer(BaseModel):
    """A supervisor's decision on a dispute."""

    model_config = ConfigDict(extra="forbid")

    decision: Decision
    answer: Note


@router.post("")
@needs(Right.ACT)
def dispute(services: ServicesDep, person: Counsellor, new: NewDispute) -> Dispute:
    """Dispute a score of one of your own turns. The score does not change."""
    with as_http_errors():
        return disputes.contest(
            services.store, person, new.session_id, new.seq, new.head, new.proposed, new.note
        )


@router.get("")
@needs(Right.READ_TEXT)
def list_disputes(
    services: ServicesDep,
    person: Reader,
    session: Annotated[
        Identifier | None, Query(description="Only disputes about this session")
    ] = None,
    waiting: Annotated[
        bool | None, Query(description="true: only unanswered disputes; false: only answered")
    ] = None,
) -> list[Dispute]:
    """The newest 500 disputes, newest first. Counsellors see only their own."""
    services.accesses.record(person.name, AuditAction.READ_SCORES, "disputes", session)
    own = person.name if person.role is PersonRole.COUNSELLOR else None
    return disputes.find(
        services.store, person.scope, session_id=session, person=own, waiting=waiting
    )


@router.post("/{dispute_id}/decide")
@needs(Right.ACT, Right.READ_TEXT)
def answer_dispute(
    services: ServicesDep, person: Supervisor, dispute_id: Identifier, answer: Answer
) -> Dispute:
    """Answer a dispute. The answer cannot be changed."""
    with as_http_errors():
        acting.check_dispute_read(services, person, dispute_id)
        return disputes.decide(services.store, person, dispute_id, answer.decision, answer.answer)
