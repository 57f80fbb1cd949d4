"""``GET /me``: who asks, what that may be, and where live events stand."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from stream_app.store.people import PersonRole
from stream_app.web.auth import SignedIn
from stream_app.web.services import Wired

router = APIRouter(tags=["account"])


@dataclass(frozen=True, slots=True)
class Me:
    """The account that the cookie or the token stands for."""

    name: str
    role: PersonRole
    team: Annotated[str | None, Field(description="A supervisor's team; null = all teams")]
    speaker: Annotated[str | None, Field(description="A counsellor's own pseudonym")]
    reads_transcripts: Annotated[bool, Field(description="Whether text is shown to this role")]
    live: Annotated[bool, Field(description="Whether live events come in: the broker answers")]
    live_position: Annotated[
        str, Field(description="Pass it as `after` to `/live` to be told what comes from now on")
    ]


@router.get("/me")
def me(services: Wired, person: SignedIn) -> Me:
    """Who I am here."""
    return Me(
        name=person.name,
        role=person.role,
        team=person.team,
        speaker=person.speaker,
        reads_transcripts=person.reads_transcripts,
        live=services.hub.live,
        live_position=services.hub.position,
    )
