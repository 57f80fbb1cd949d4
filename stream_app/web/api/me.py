"""``GET /me``: the signed-in account, its permissions, and the position of live events."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from stream_app.store.accounts.roles import PersonRole, Right
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import CurrentPerson, needs

router = APIRouter(tags=["account"])


@dataclass(frozen=True, slots=True)
class Me:
    """The account of the cookie or token."""

    name: str
    role: PersonRole
    team: Annotated[str | None, Field(description="A supervisor's team")]
    all_teams: Annotated[bool, Field(description="Whether a supervisor reads all teams")]
    speaker: Annotated[str | None, Field(description="A counsellor's pseudonym in sessions")]
    reads_transcripts: Annotated[bool, Field(description="Whether you may read transcripts")]
    rights: Annotated[
        list[Right] | None,
        Field(description="What the token may do; null = everything that the role may"),
    ]
    live: Annotated[
        bool, Field(description="Whether live events arrive, that is, the broker is available")
    ]
    live_position: Annotated[
        str, Field(description="Pass it as `after` to `/live` to get all events from now on")
    ]


@router.get("/me")
@needs()
def me(services: ServicesDep, person: CurrentPerson) -> Me:
    """The signed-in account."""
    return Me(
        name=person.name,
        role=person.role,
        team=person.team,
        all_teams=person.all_teams,
        speaker=person.speaker,
        reads_transcripts=person.reads_transcripts,
        rights=None
        if person.rights is None
        else sorted(person.rights, key=lambda right: right.value),
        live=services.hub.live,
        live_position=services.hub.position,
    )
