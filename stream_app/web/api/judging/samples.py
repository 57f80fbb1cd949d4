"""Calibration samples: turns that several supervisors rate blind."""

import secrets
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from stream_app.contracts.events import Role
from stream_app.findings import blind_rating, calibration_report
from stream_app.findings.calibration_report import Report
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.roles import PersonRole, Right
from stream_app.store.work import calibration_samples
from stream_app.store.work.calibration_samples import (
    MAX_SIZE,
    MIN_SIZE,
    CalibrationSample,
    NewCalibrationSample,
)
from stream_app.web.http.fields import NO_NUL, Identifier
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import ReportReader, Supervisor, needs
from stream_app.work.visible import sample_for

router = APIRouter(prefix="/samples", tags=["samples"])
SEEDS: Final = 2**31
Place = Annotated[int, Path(ge=1, le=MAX_SIZE, description="Place in the sample, from 1")]


class SampleRequest(BaseModel):
    """Parameters of a new calibration sample."""

    model_config = ConfigDict(extra="forbid")

    title: Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=NO_NUL)]
    bundle: Identifier
    team: Annotated[
        Identifier | None, Field(description="Draw only from this team; default: your team, or all")
    ] = None
    size: Annotated[int, Field(ge=MIN_SIZE, le=MAX_SIZE, description="Number of turns")] = 40
    seed: Annotated[
        int | None,
        Field(
            ge=0, lt=SEEDS, description="The same seed over the same turns draws the same sample"
        ),
    ] = None


LevelGiven = Annotated[int, Field(ge=0, le=2)]


class Levels(BaseModel):
    """A rater's levels for a turn: 0 none, 1 weak, 2 strong."""

    model_config = ConfigDict(extra="forbid")

    emotional_reactions: LevelGiven
    interpretations: LevelGiven
    explorations: LevelGiven


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a sample. ``finished``: number of raters who have rated every turn."""

    sample: CalibrationSample
    rated: Annotated[int, Field(description="Number of turns that you have rated")]
    left: Annotated[list[int], Field(description="Places of the turns that you have not rated yet")]
    finished: int
    report: Annotated[bool, Field(description="Whether you may read the report")]


@dataclass(frozen=True, slots=True)
class TurnText:
    """Role and text of a turn."""

    role: Role
    text: str | None


@dataclass(frozen=True, slots=True)
class BlindTurn:
    """A counsellor turn with preceding turns, and your ratings; no scores and no session id."""

    place: int
    before: list[TurnText]
    turn: TurnText
    yours: Annotated[dict[str, int], Field(description="Your ratings so far, by head")]


@router.post("", status_code=201)
@needs(Right.ACT)
def draw_sample(
    services: ServicesDep, person: Supervisor, asked: SampleRequest
) -> CalibrationSample:
    """Draw counsellor turns at random, each combination of levels about equally often."""
    seed = secrets.randbelow(SEEDS) if asked.seed is None else asked.seed
    team = person.chosen_team(asked.team)
    new = NewCalibrationSample(asked.title, asked.bundle, team, asked.size, seed)
    with as_http_errors():
        return calibration_samples.draw(services.store, person, new)


@router.get("")
@needs(Right.READ_SCORES)
def list_samples(services: ServicesDep, person: ReportReader) -> list[CalibrationSample]:
    """The newest 100 samples."""
    services.accesses.record(person.name, AuditAction.READ_STATISTICS, "calibration")
    return [
        sample_for(person, sample)
        for sample in calibration_samples.find(services.store, person.scope)
    ]


@router.get("/{sample_id}")
@needs(Right.READ_SCORES)
def one_sample(services: ServicesDep, person: ReportReader, sample_id: Identifier) -> Progress:
    """One sample, with your progress and that of the other raters."""
    with as_http_errors():
        sample = calibration_samples.one(services.store, person.scope, sample_id)
    services.accesses.record(person.name, AuditAction.READ_STATISTICS, "calibration sample")
    done = calibration_samples.collect_ratings(services.store, sample)
    return Progress(
        sample_for(person, sample),
        len(done.rated(person.name)),
        done.unrated(person.name) if person.role is PersonRole.SUPERVISOR else [],
        len(done.finished),
        calibration_report.may_read_report(done, person),
    )


@router.get("/{sample_id}/turns/{place}")
@needs(Right.READ_TEXT)
def turn_of_sample(
    services: ServicesDep, person: Supervisor, sample_id: Identifier, place: Place
) -> BlindTurn:
    """A turn to rate. The read is audited."""
    with as_http_errors():
        shown = blind_rating.read_turn(services.store, person, sample_id, place)
    *before, turn = [TurnText(each.role, each.text) for each in shown.turns]
    return BlindTurn(place, before, turn, shown.yours)


@router.post("/{sample_id}/turns/{place}")
@needs(Right.ACT, Right.READ_TEXT)
def rate_turn_of_sample(
    services: ServicesDep,
    person: Supervisor,
    sample_id: Identifier,
    place: Place,
    levels: Levels,
) -> BlindTurn:
    """Rate a turn: one level from 0 to 2 per mechanism."""
    with as_http_errors():
        blind_rating.rate_turn(services.store, person, sample_id, place, levels.model_dump())
        shown = blind_rating.read_turn(services.store, person, sample_id, place)
    *before, turn = [TurnText(each.role, each.text) for each in shown.turns]
    return BlindTurn(place, before, turn, shown.yours)


@router.get("/{sample_id}/report")
@needs(Right.READ_SCORES)
def report_on_sample(services: ServicesDep, person: ReportReader, sample_id: Identifier) -> Report:
    """Agreement by head, confusion matrices, and the turns on which raters differ most.

    409 until two people have rated every turn; supervisors must be among them.
    """
    with as_http_errors():
        sample = calibration_samples.one(services.store, person.scope, sample_id)
        services.accesses.record(person.name, AuditAction.READ_STATISTICS, "calibration report")
        return calibration_report.build_report(services.store, person, sample)
