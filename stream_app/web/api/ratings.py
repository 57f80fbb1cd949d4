"""Human ratings: they stand beside the model's scores and never change them."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, ConfigDict, Field

from stream_app.store import ratings, samples
from stream_app.store.people import PersonRole
from stream_app.store.ratings import Judgement, Rating
from stream_app.web.api.fields import Identifier
from stream_app.web.auth import Reader
from stream_app.web.refused import as_http
from stream_app.web.services import Wired

router = APIRouter(prefix="/ratings", tags=["ratings"])
LARGEST_SEQ = 2**31 - 1


class NewRating(BaseModel):
    """What somebody says of one head of a turn, or of a session."""

    model_config = ConfigDict(extra="forbid")

    session_id: Identifier
    seq: Annotated[
        int | None, Field(ge=0, le=LARGEST_SEQ, description="The turn; null rates the session")
    ] = None
    head: Annotated[
        Identifier, Field(description="A head of the bundle, or `rating` for a session")
    ]
    value: Annotated[
        int,
        Field(
            ge=0,
            le=1000,
            description="Levels 0-2; for other heads the place of a label in the bundle's "
            "manifest; 1-5 for a session",
        ),
    ]
    sample_id: Annotated[
        Identifier | None, Field(description="Given blind in this sample (supervisors)")
    ] = None


@router.post("")
def give_rating(services: Wired, person: Reader, new: NewRating) -> Rating:
    """Rate; the same person's earlier rating of the same head is replaced.

    A counsellor's ratings of the own sessions are kept, and left out of the agreement figures.
    """
    given = [Judgement(new.session_id, new.seq, new.head, new.value)]
    with as_http():
        if new.sample_id is None:
            return ratings.rate(services.store, person.scope, person.name, given)[0]
        if person.role is not PersonRole.SUPERVISOR:
            raise HTTPException(403, "samples are rated by supervisors")
        return samples.rate(services.store, person, new.sample_id, given)[0]


@router.get("")
def list_ratings(
    services: Wired,
    person: Reader,
    session: Annotated[Identifier, Query(description="Ratings of this session")],
) -> list[Rating]:
    """Ratings of a session and its turns, oldest first; blind ones are not among them."""
    return ratings.of_session(services.store, person, session)


@router.delete("/{rating_id}", status_code=204)
def take_back_rating(services: Wired, person: Reader, rating_id: Identifier) -> None:
    """Take an own rating back; one of a sample stays."""
    with as_http():
        ratings.take_back(services.store, person.name, rating_id)
