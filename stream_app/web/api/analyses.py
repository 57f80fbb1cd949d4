"""``GET /analyses/{question}``: longitudinal analyses; small cells are hidden."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Depends, HTTPException, Path, Query
from pydantic import Field

from stream_app import extras
from stream_app.analytics.questions.result import Analysis
from stream_app.findings import agreement_words
from stream_app.findings.analysis_runs import AnalysisRunning, declared_attributes
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole, Right
from stream_app.store.sessions.scope import Scope
from stream_app.web.http.fields import Identifier, Moment, Team
from stream_app.web.problems import problem_responses
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import needs, require_role

if TYPE_CHECKING:
    from stream_app.analytics.questions.questions import Asked

router = APIRouter(prefix="/analyses", tags=["analyses"])
AnalysisReader = Annotated[Person, Depends(require_role(PersonRole.SUPERVISOR, PersonRole.ANALYST))]
RETRY_AFTER: Final = {"Retry-After": "30"}


@dataclass(frozen=True, slots=True)
class QuestionRead:
    """A question that can be asked."""

    question: Annotated[str, Field(description="Its name in `/analyses/{question}`")]
    measures: Annotated[list[str], Field(description="Measures that can be chosen; empty: none")]


@router.get("")
@needs(Right.READ_SCORES)
def list_questions(person: AnalysisReader) -> list[QuestionRead]:  # noqa: ARG001  # the role
    """The questions and their measures."""
    extras.require_analytics()
    from stream_app.analytics.questions.questions import QUESTIONS  # noqa: PLC0415

    return [QuestionRead(name, list(each.measures)) for name, each in QUESTIONS.items()]


@router.get("/{question}", responses=problem_responses(404, 409))
@needs(Right.READ_SCORES)
def answer_question(
    services: ServicesDep,
    person: AnalysisReader,
    question: Annotated[Identifier, Path(description="As listed by `/analyses`")],
    team: Team = None,
    since: Annotated[
        Moment | None, Query(description="Sessions that began at this time or later")
    ] = None,
    until: Annotated[Moment | None, Query(description="Sessions that began before")] = None,
    measure: Annotated[
        list[Identifier] | None, Query(max_length=20, description="Only these; all if left out")
    ] = None,
    fewest_turns: Annotated[
        int, Query(ge=1, le=10_000, description="Minimum activity of a counsellor, in turns")
    ] = 10,
    fewest_days: Annotated[
        int, Query(ge=0, le=3650, description="Minimum stay of a counsellor, in days")
    ] = 182,
    calendar: Annotated[
        bool, Query(description="Curves by calendar week instead of months since joining")
    ] = False,
    at: Annotated[
        Moment | None,
        Query(description="service-levels: date of a change; drift: begin of the current period"),
    ] = None,
    trained: Annotated[
        Identifier | None,
        Query(
            description="service-levels: the team that `at` concerns; the others are the "
            "comparison. For people who read all teams"
        ),
    ] = None,
) -> Analysis:
    """Associations over the own scope, each with n, 95 % interval and bundle; names nobody.

    A supervisor of a team gets the analysis of that team. One analysis runs at a time; others get
    503. Each is audited.
    """
    extras.require_analytics()
    from stream_app.analytics.questions.questions import QUESTIONS, Asked  # noqa: PLC0415

    if question not in QUESTIONS:
        raise HTTPException(404, f"known questions: {', '.join(QUESTIONS)}")
    known = QUESTIONS[question].measures
    if not set(measure or ()) <= set(known):
        raise HTTPException(404, f"{question} has the measures {', '.join(known) or '(none)'}")
    own_team = person.chosen_team(team)
    if trained is not None and (own_team is not None or at is None):
        raise HTTPException(422, "trained needs at, and all teams")
    asked = Asked(
        scope=Scope(team=own_team),
        since=since,
        until=until,
        measures=tuple(measure or ()),
        fewest_turns=fewest_turns,
        fewest_days=fewest_days,
        calendar=calendar,
        at=at,
        trained=trained,
        attributes=declared_attributes(services.settings, services.store),
        archive=services.settings.archive,
        restricted=services.settings.restrictions.everywhere,
    )
    try:
        with services.analyses.alone():
            return _answered(services, person, question, asked)
    except AnalysisRunning as problem:
        raise HTTPException(503, str(problem), RETRY_AFTER) from None


def _answered(services: Services, person: Person, question: str, asked: "Asked") -> Analysis:
    from stream_app.analytics.questions.questions import answer  # noqa: PLC0415

    audit.record(services.store, person.name, AuditAction.EXPORT, detail=f"analysis {question}")
    return answer(
        services.read_store,
        question,
        asked,
        lambda bundles: agreement_words.sentences(services.read_store, bundles),
    )
