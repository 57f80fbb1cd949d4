"""Mutes: stop notifications about a rule, a session or a team for some time."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Self

from fastapi import APIRouter, HTTPException, Path
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.roles import Right
from stream_app.store.alerts import alert_actions
from stream_app.store.alerts.alert_actions import Mute
from stream_app.web.http.fields import NO_NUL, Identifier, Moment
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import Supervisor, needs
from stream_app.work import mutes
from stream_app.work.mutes import LONGEST, MAX_MINUTES

router = APIRouter(prefix="/mutes", tags=["alerts"])


class NewMute(BaseModel):
    """What to mute (at least one of rule, session_id and team) and for how long."""

    model_config = ConfigDict(extra="forbid")

    rule: Annotated[
        Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=NO_NUL)] | None,
        Field(description="Only this rule"),
    ] = None
    session_id: Annotated[Identifier | None, Field(description="Only this session")] = None
    team: Annotated[Identifier | None, Field(description="Only this team")] = None
    until: Annotated[
        Moment | None, Field(description="End of the mute; alternative to `minutes`")
    ] = None
    minutes: Annotated[
        int | None,
        Field(ge=1, le=MAX_MINUTES, description="Length of the mute; alternative to `until`"),
    ] = None
    reason: Annotated[
        Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=NO_NUL)] | None,
        Field(description="Reason, for colleagues"),
    ] = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.rule is None and self.session_id is None and self.team is None:
            raise ValueError("give at least one of rule, session_id and team")
        if (self.until is None) == (self.minutes is None):
            raise ValueError("give exactly one of until and minutes")
        return self

    def end(self, now: datetime) -> datetime:
        """The end of the mute.

        Raises:
            HTTPException: 422 if the end is in the past or more than 30 days ahead.
        """
        end = self.until or now + timedelta(minutes=self.minutes or 0)
        if not now < end <= now + LONGEST + timedelta(seconds=60):
            raise HTTPException(422, "`until` must be in the future, at most 30 days ahead")
        return end


@router.get("")
@needs(Right.READ_TEXT)
def list_mutes(services: ServicesDep, person: Supervisor) -> list[Mute]:
    """Active mutes that affect alerts within your access scope."""
    services.accesses.record(person.name, AuditAction.READ_ALERTS, "mutes")
    return alert_actions.mutes_in_force(services.store, person.scope)


@router.post("", status_code=201)
@needs(Right.ACT)
def mute(services: ServicesDep, person: Supervisor, new: NewMute) -> Mute:
    """Mute a rule, a session or a team. Its alerts are still listed, marked as muted."""
    with as_http_errors():
        return mutes.add(
            services,
            person,
            rule=new.rule,
            session_id=new.session_id,
            team=new.team,
            until=new.end(datetime.now(UTC)),
            reason=new.reason,
        )


@router.delete("/{mute_id}")
@needs(Right.ACT, Right.READ_TEXT)
def end_mute(
    services: ServicesDep,
    person: Supervisor,
    mute_id: Annotated[Identifier, Path(description="The mute's id")],
) -> Mute:
    """End a mute before its time."""
    return alert_actions.end_mute(services.store, person.scope, mute_id)
