"""Mutes: alerts of a rule, a session or a team call nobody for a while."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Self

from fastapi import APIRouter, HTTPException, Path
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from stream_app.store import alert_actions
from stream_app.store.alert_actions import Mute
from stream_app.store.people import Person
from stream_app.store.reading.facts import look_up
from stream_app.web.api.fields import NO_NUL, Identifier, Moment
from stream_app.web.auth import Supervisor
from stream_app.web.services import Services, Wired

LONGEST_MINUTES = 60 * 24 * 30

router = APIRouter(prefix="/mutes", tags=["alerts"])


class NewMute(BaseModel):
    """What is to be quiet; at least one of rule, session_id and team, and how long."""

    model_config = ConfigDict(extra="forbid")

    rule: Annotated[
        Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=NO_NUL)] | None,
        Field(description="Only this rule"),
    ] = None
    session_id: Annotated[Identifier | None, Field(description="Only this session")] = None
    team: Annotated[Identifier | None, Field(description="Only this team")] = None
    until: Annotated[Moment | None, Field(description="Until then; or give `minutes`")] = None
    minutes: Annotated[
        int | None, Field(ge=1, le=LONGEST_MINUTES, description="For so many minutes from now")
    ] = None
    reason: Annotated[
        Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=NO_NUL)] | None,
        Field(description="Why, for colleagues"),
    ] = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.rule is None and self.session_id is None and self.team is None:
            raise ValueError("say what is to be muted: rule, session_id or team")
        if (self.until is None) == (self.minutes is None):
            raise ValueError("say how long, by one of until and minutes")
        return self

    def end(self, now: datetime) -> datetime:
        """When it ends.

        Raises:
            HTTPException: 422, the end is past or more than 30 days ahead.
        """
        end = self.until or now + timedelta(minutes=self.minutes or 0)
        if not now < end <= now + timedelta(minutes=LONGEST_MINUTES, seconds=60):
            raise HTTPException(422, "`until` must lie ahead, by 30 days at most")
        return end


@router.get("")
def list_mutes(services: Wired, person: Supervisor) -> list[Mute]:
    """Mutes in force that keep alerts of the own scope quiet."""
    return alert_actions.mutes_in_force(services.store, person.scope)


@router.post("", status_code=201)
def mute(services: Wired, person: Supervisor, new: NewMute) -> Mute:
    """Keep a rule, a session or a team quiet. Alerts go on, and are marked as muted."""
    _check_scope(services, person, new)
    return alert_actions.mute(
        services.store,
        rule=new.rule,
        session_id=new.session_id,
        team=person.team if new.session_id is None and new.team is None else new.team,
        until=new.end(datetime.now(UTC)),
        reason=new.reason,
        person=person.name,
    )


@router.delete("/{mute_id}")
def end_mute(
    services: Wired,
    person: Supervisor,
    mute_id: Annotated[Identifier, Path(description="The mute's id")],
) -> Mute:
    """Let alerts call again."""
    return alert_actions.end_mute(services.store, person.scope, mute_id)


def _check_scope(services: Services, person: Person, new: NewMute) -> None:
    """A supervisor of a team mutes that team and its sessions only."""
    if person.team is not None and new.team not in (None, person.team):
        raise HTTPException(403, "this is another team's")
    if new.session_id is not None:
        found = look_up(services.store, [new.session_id]).get(new.session_id)
        if found is None or person.scope.team not in (None, found.team):
            raise HTTPException(404, "there is no such session")
