"""Calibration pages: samples, blind rating with one turn per page, and the report."""

import secrets
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from stream_app.contracts.scores import MECHANISMS
from stream_app.core.measures.heads import LEVELS
from stream_app.findings import agreement, blind_rating, calibration_report
from stream_app.findings.blind_rating import SampleTurnView
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.sessions import bundle_info
from stream_app.store.sessions.scored_turns import StateConflict
from stream_app.store.work import calibration_samples, disputes
from stream_app.store.work.calibration_samples import (
    MAX_SIZE,
    MIN_SIZE,
    CalibrationSample,
    NewCalibrationSample,
    SampleRatings,
)
from stream_app.web.api.judging.samples import SEEDS, Place, SampleRequest
from stream_app.web.console.rendering import render
from stream_app.web.http.fields import Identifier
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Member, ReportReader, Supervisor
from stream_app.work.visible import sample_for

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
MAX_SAMPLES: Final = 30
LevelGiven = Annotated[int, Form(ge=0, le=2)]
MEANINGS: Final = {
    "emotional_reactions": "warmth, concern or compassion that the counsellor expresses",
    "interpretations": "understanding of the client's feelings and experience, put into words",
    "explorations": "asking about feelings and experience that the client has not mentioned",
}
STEPS: Final = {
    "emotional_reactions": ("none", "implied, or in general words", "named in specific words"),
    "interpretations": ("none", "says that they understand", "says what they understand"),
    "explorations": ("none", "a general question", "a question about something specific"),
}


@dataclass(frozen=True, slots=True)
class SampleView:
    """A calibration sample with the progress of the reader and of the other raters."""

    sample: CalibrationSample
    done: SampleRatings
    person: Person

    @property
    def rates(self) -> bool:
        """Whether the reader may rate turns."""
        return self.person.role is PersonRole.SUPERVISOR

    @property
    def rated(self) -> int:
        """Number of turns that the reader has rated."""
        return len(self.done.rated(self.person.name))

    @property
    def next_place(self) -> int | None:
        """The next turn to rate; None if all are rated."""
        left = self.done.unrated(self.person.name)
        return left[0] if left else None

    @property
    def finished(self) -> int:
        """Number of people who have rated every turn."""
        return len(self.done.finished)

    @property
    def report(self) -> bool:
        """Whether the reader may read the report."""
        return calibration_report.may_read_report(self.done, self.person)


@router.get("/calibration")
def overview(request: Request, services: ServicesDep, person: Member) -> Response:
    """List samples, and the agreement of people with each model."""
    services.accesses.record(person.name, AuditAction.READ_STATISTICS, "calibration")
    return _overview(request, services, person)


@router.post("/calibration")
def draw(
    request: Request,
    services: ServicesDep,
    person: Supervisor,
    title: Annotated[str, Form()],
    bundle: Annotated[str, Form()],
    size: Annotated[int, Form()] = 40,
    team: Annotated[str, Form()] = "",
    seed: Annotated[str, Form()] = "",
) -> Response:
    """Draw a sample and redirect to it; errors are shown above the form."""
    asked = SampleRequest.model_validate(
        {
            "title": title.strip(),
            "bundle": bundle,
            "size": size,
            "team": team.strip() or None,
            "seed": seed.strip() or None,
        }
    )
    chosen = secrets.randbelow(SEEDS) if asked.seed is None else asked.seed
    own_team = person.chosen_team(asked.team)
    new = NewCalibrationSample(asked.title, asked.bundle, own_team, asked.size, chosen)
    try:
        made = calibration_samples.draw(services.store, person, new)
    except StateConflict as problem:
        return _overview(request, services, person, refused=str(problem), status=409)
    return RedirectResponse(f"/calibration/{made.sample_id}", status_code=303)


@router.get("/calibration/{sample_id}")
def sample(
    request: Request, services: ServicesDep, person: ReportReader, sample_id: Identifier
) -> Response:
    """Show progress, and the report if the reader may read it."""
    with as_http_errors():
        found = calibration_samples.one(services.store, person.scope, sample_id)
    services.accesses.record(person.name, AuditAction.READ_STATISTICS, "calibration sample")
    shown = SampleView(
        sample_for(person, found),
        calibration_samples.collect_ratings(services.store, found),
        person,
    )
    report = (
        calibration_report.build_report(services.store, person, found) if shown.report else None
    )
    return render(
        request, "calibration_sample.html", person, shown=shown, report=report, steps=LEVELS
    )


@router.get("/calibration/{sample_id}/turns/{place}")
def turn(
    request: Request, services: ServicesDep, person: Supervisor, sample_id: Identifier, place: Place
) -> Response:
    """Show one turn to rate; after all turns are rated, everyone's ratings of it."""
    with as_http_errors():
        read = blind_rating.read_turn(services.store, person, sample_id, place)
    return _turn_page(request, services, person, read)


@router.post("/calibration/{sample_id}/turns/{place}")
def rate(
    services: ServicesDep,
    person: Supervisor,
    sample_id: Identifier,
    place: Place,
    emotional_reactions: LevelGiven,
    interpretations: LevelGiven,
    explorations: LevelGiven,
) -> Response:
    """Store the three levels and redirect to the next unrated turn."""
    given = (emotional_reactions, interpretations, explorations)
    values = dict(zip(MECHANISMS, given, strict=True))
    with as_http_errors():
        blind_rating.rate_turn(services.store, person, sample_id, place, values)
        done = calibration_samples.collect_ratings(
            services.store, calibration_samples.one(services.store, person.scope, sample_id)
        )
    left = done.unrated(person.name)
    following = [other for other in left if other > place] or left
    to = f"/turns/{following[0]}" if following else ""
    return RedirectResponse(f"/calibration/{sample_id}{to}", status_code=303)


def _overview(
    request: Request, services: Services, person: Person, refused: str = "", status: int = 200
) -> Response:
    store = services.store
    found = (
        []
        if person.role is PersonRole.COUNSELLOR
        else calibration_samples.find(store, person.scope, MAX_SAMPLES)
    )
    bundles = sorted(bundle_info.read(store), reverse=True)
    return render(
        request,
        "calibration.html",
        person,
        status,
        shown=[
            SampleView(each, calibration_samples.collect_ratings(store, each), person)
            for each in found
        ],
        bundles=bundles,
        agreements=[
            (bundle, agreement.of_bundle(store, bundle), disputes.counts(store, bundle))
            for bundle in bundles
        ],
        shadows=agreement.beside(store),
        refused=refused,
        smallest=MIN_SIZE,
        largest=MAX_SIZE,
    )


def _turn_page(
    request: Request, services: Services, person: Person, read: SampleTurnView
) -> Response:
    shown = SampleView(read.sample, read.work, person)
    report = None
    difference = None
    if shown.report:
        report = calibration_report.build_report(services.store, person, read.sample)
        difference = next((d for d in report.differences if d.place == read.place), None)
    *before, last = read.turns
    return render(
        request,
        "calibration_turn.html",
        person,
        shown=shown,
        place=read.place,
        before=before,
        turn=last,
        yours=read.yours,
        closed=person.name in read.work.finished,
        difference=difference,
        you=report.you if report else None,
        meanings=MEANINGS,
        steps=STEPS,
    )
