"""Samples of turns that several supervisors rate blind."""

import secrets
from dataclasses import dataclass, replace
from typing import Annotated, Final

from fastapi import APIRouter, Depends, HTTPException, Path
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from stream_app.contracts.events import Role
from stream_app.store import samples
from stream_app.store.people import Person, PersonRole
from stream_app.store.samples import LARGEST, SMALLEST, NewSample, Sample
from stream_app.web import blind, calibration
from stream_app.web.api.alerts import WITHHELD
from stream_app.web.api.fields import NO_NUL, Identifier
from stream_app.web.auth import Supervisor, allowed
from stream_app.web.calibration import Report
from stream_app.web.refused import as_http
from stream_app.web.services import Wired

router = APIRouter(prefix="/samples", tags=["samples"])
SEEDS: Final = 2**31
ReportReader = Annotated[Person, Depends(allowed(PersonRole.SUPERVISOR, PersonRole.ANALYST))]
Place = Annotated[int, Path(ge=1, le=LARGEST, description="1, 2, … within the sample")]


class SampleAsked(BaseModel):
    """What to draw."""

    model_config = ConfigDict(extra="forbid")

    title: Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=NO_NUL)]
    bundle: Identifier
    team: Annotated[
        Identifier | None, Field(description="A supervisor of one team draws from it alone")
    ] = None
    size: Annotated[int, Field(ge=SMALLEST, le=LARGEST, description="Turns")] = 40
    seed: Annotated[
        int | None, Field(ge=0, lt=SEEDS, description="The same seed draws the same turns")
    ] = None


LevelGiven = Annotated[int, Field(ge=0, le=2)]


class Levels(BaseModel):
    """What a rater says of a turn: 0 none, 1 weak, 2 strong."""

    model_config = ConfigDict(extra="forbid")

    emotional_reactions: LevelGiven
    interpretations: LevelGiven
    explorations: LevelGiven


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sample is. ``finished``: raters who have rated every turn."""

    sample: Sample
    rated: Annotated[int, Field(description="Turns that you have rated")]
    left: Annotated[list[int], Field(description="Places that you have yet to rate")]
    finished: int
    report: Annotated[bool, Field(description="Whether the report is open to you")]


@dataclass(frozen=True, slots=True)
class Spoken:
    """A turn as a rater sees it."""

    role: Role
    text: str | None


@dataclass(frozen=True, slots=True)
class BlindTurn:
    """A counsellor turn with what precedes it; no score, no session, nobody's rating but yours."""

    place: int
    before: list[Spoken]
    turn: Spoken
    yours: Annotated[dict[str, int], Field(description="What you gave so far, by head")]


def shown(person: Person, sample: Sample) -> Sample:
    """A sample as this person may see it: analysts read no names of people."""
    return replace(sample, person=WITHHELD) if person.role is PersonRole.ANALYST else sample


@router.post("", status_code=201)
def draw_sample(services: Wired, person: Supervisor, asked: SampleAsked) -> Sample:
    """Draw turns at random, every combination of levels about equally often."""
    seed = secrets.randbelow(SEEDS) if asked.seed is None else asked.seed
    if person.team is not None and asked.team not in (None, person.team):
        raise HTTPException(403, "you can draw from your own team")
    new = NewSample(asked.title, asked.bundle, person.team or asked.team, asked.size, seed)
    with as_http():
        return samples.draw(services.store, person, new)


@router.get("")
def list_samples(services: Wired, person: ReportReader) -> list[Sample]:
    """The newest hundred samples."""
    return [shown(person, sample) for sample in samples.find(services.store, person.scope)]


@router.get("/{sample_id}")
def one_sample(services: Wired, person: ReportReader, sample_id: Identifier) -> Progress:
    """How far you and the others are."""
    with as_http():
        sample = samples.one(services.store, person.scope, sample_id)
    done = samples.work(services.store, sample)
    return Progress(
        shown(person, sample),
        len(done.rated(person.name)),
        done.left(person.name) if person.role is PersonRole.SUPERVISOR else [],
        len(done.finished),
        calibration.may_read_report(done, person),
    )


@router.get("/{sample_id}/turns/{place}")
def turn_of_sample(
    services: Wired, person: Supervisor, sample_id: Identifier, place: Place
) -> BlindTurn:
    """A turn to rate. The read is audited."""
    with as_http():
        shown = blind.turn(services.store, person, sample_id, place)
    *before, turn = [Spoken(each.role, each.text) for each in shown.turns]
    return BlindTurn(place, before, turn, shown.yours)


@router.post("/{sample_id}/turns/{place}")
def rate_turn_of_sample(
    services: Wired,
    person: Supervisor,
    sample_id: Identifier,
    place: Place,
    levels: Levels,
) -> BlindTurn:
    """Rate it by place: levels 0-2 by mechanism."""
    with as_http():
        blind.rate(services.store, person, sample_id, place, levels.model_dump())
        shown = blind.turn(services.store, person, sample_id, place)
    *before, turn = [Spoken(each.role, each.text) for each in shown.turns]
    return BlindTurn(place, before, turn, shown.yours)


@router.get("/{sample_id}/report")
def report_on_sample(services: Wired, person: ReportReader, sample_id: Identifier) -> Report:
    """Agreement by head, confusion tables, the turns on which people differ most.

    409 until two people have rated every turn; a rater needs to be one of them.
    """
    with as_http():
        sample = samples.one(services.store, person.scope, sample_id)
        return calibration.report(services.store, person, sample)
