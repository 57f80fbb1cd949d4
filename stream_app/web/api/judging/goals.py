"""Coaching goals, private to a supervisor and a counsellor: everybody else gets 404."""

from datetime import UTC, date, datetime
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.roles import Right
from stream_app.store.work import coaching_goals
from stream_app.store.work.coaching_goals import Goal, GoalState
from stream_app.web.http.fields import Identifier, Note
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import CurrentPerson, Reader, Supervisor, needs
from stream_app.work import goal_progress
from stream_app.work.goal_progress import Progress, Target

router = APIRouter(prefix="/goals", tags=["goals"])


class NewGoal(BaseModel):
    """A goal that a supervisor sets for a counsellor."""

    model_config = ConfigDict(extra="forbid")

    counsellor: Annotated[Identifier, Field(description="The counsellor's pseudonym")]
    measure: Annotated[Identifier, Field(description="A measure of the roll-ups")]
    goal: Annotated[Note, Field(description="Redacted like the text of turns")]
    starts_on: date
    ends_on: date
    target: Target | None = None


class GoalEnd(BaseModel):
    """How a goal ended."""

    model_config = ConfigDict(extra="forbid")

    state: Literal["reached", "closed"]


@router.post("", status_code=201)
@needs(Right.ACT)
def set_goal(services: ServicesDep, person: Supervisor, new: NewGoal) -> Goal:
    """Set a goal for a counsellor whose sessions you may read. Audited."""
    with as_http_errors():
        return goal_progress.add(
            services,
            person,
            new.counsellor,
            new.measure,
            new.goal,
            new.starts_on,
            new.ends_on,
            new.target,
        )


@router.get("")
@needs(Right.READ_TEXT)
def list_goals(services: ServicesDep, person: Reader) -> list[Goal]:
    """Your goals, newest first: those that you set, or those set for you."""
    services.accesses.record(person.name, AuditAction.READ_STATISTICS, "goals")
    return coaching_goals.find(services.store, person)


@router.get("/{goal_id}")
@needs(Right.READ_TEXT)
def one_goal(services: ServicesDep, person: CurrentPerson, goal_id: Identifier) -> Progress:
    """One goal with the means of its measure before it and since, and the change. Audited."""
    with as_http_errors():
        goal = coaching_goals.one(services.store, person, goal_id)
    goal_progress.record_read(services, person, goal.counsellor)
    around = goal_progress.sessions_around(services, person, goal)
    return goal_progress.progress(goal, around, datetime.now(UTC).date())


@router.post("/{goal_id}/end")
@needs(Right.ACT, Right.READ_TEXT)
def end_goal(
    services: ServicesDep, person: CurrentPerson, goal_id: Identifier, end: GoalEnd
) -> Goal:
    """End a goal that you set. It cannot be reopened."""
    with as_http_errors():
        return coaching_goals.end(services.store, person, goal_id, GoalState(end.state))
