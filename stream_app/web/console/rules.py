"""The alert rules: read them, edit a copy, try it on ended sessions, adopt, roll back.

Works without JavaScript, which only checks while typing.
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Form, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from stream_app.core.rules.rule_file import RuleFileError
from stream_app.core.rules.rules import RuleSet
from stream_app.errors import RapportError
from stream_app.settings import RulesSource
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person, PersonError
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.alerts import precision, rule_versions
from stream_app.store.alerts.rule_versions import MAX_REASON
from stream_app.store.sessions.scored_turns import StateConflict
from stream_app.web.console.confirmation import Password, confirmed
from stream_app.web.console.rendering import render
from stream_app.web.http.fields import VersionNumber
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Admin, RuleReader
from stream_app.work import rule_changes, rule_trials
from stream_app.work.rule_changes import MAX_TEXT, Checked, RulesInForce
from stream_app.work.rule_trials import MAX_SESSIONS, USUAL_SESSIONS, Trial

router = APIRouter(prefix="/rules", default_response_class=HTMLResponse, include_in_schema=False)
TRIAL_SIZES: Final = (20, USUAL_SESSIONS, MAX_SESSIONS)
Text = Annotated[str, Form(max_length=2 * MAX_TEXT, pattern=r"^[^\x00]*$")]
Reason = Annotated[str, Form(max_length=MAX_REASON, pattern=r"^[^\x00]*$")]


@dataclass(frozen=True, slots=True)
class Draft:
    """What the page of a draft shows beside its text; ``problem``: why it was not saved."""

    text: str
    checked: Checked | None = None
    trial: Trial | None = None
    sessions: int = USUAL_SESSIONS
    problem: str = ""
    reason: str = ""


@router.get("")
def rules(
    request: Request,
    services: ServicesDep,
    person: RuleReader,
    saved: Annotated[int | None, Query(ge=1)] = None,
) -> Response:
    """Show the rules in force and the history of their versions."""
    done = f"Version {saved} is saved. It is not in force." if saved else ""
    return _overview(request, services, person, done)


@router.get("/draft")
def draft(
    request: Request,
    services: ServicesDep,
    person: RuleReader,
    version: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
) -> Response:
    """Edit a copy of the rules in force, or of a version."""
    with as_http_errors():
        if version is not None:
            text = rule_versions.find(services.store, version).text
        else:
            text = rule_changes.in_force(services).text
    return _draft(request, person, services, Draft(text))


@router.post("/draft/check")
def check(request: Request, services: ServicesDep, person: RuleReader, text: Text) -> Response:
    """Check a draft."""
    services.rules_checked.count(person.name)
    lines = _lines(text)
    found = rule_changes.check(services, lines)
    return _draft(request, person, services, Draft(lines, found))


@router.post("/draft/try")
def try_out(
    request: Request,
    services: ServicesDep,
    person: RuleReader,
    text: Text,
    sessions: Annotated[int, Form(ge=1, le=MAX_SESSIONS)] = USUAL_SESSIONS,
) -> Response:
    """Try a draft on the last ended sessions that the person may read."""
    lines = _lines(text)
    checked = rule_changes.check(services, lines)
    if not checked.valid:
        return _draft(request, person, services, Draft(lines, checked, sessions=sessions))
    try:
        trial = rule_trials.try_out(services, person, lines, sessions)
    except (RuleFileError, StateConflict) as problem:
        shown = Draft(lines, checked, sessions=sessions, problem=str(problem))
        return _draft(request, person, services, shown)
    return _draft(request, person, services, Draft(lines, checked, trial, sessions))


@router.post("/draft/download")
def download(_: RuleReader, text: Text) -> Response:
    """Download a draft as a file of rules."""
    headers = {"Content-Disposition": 'attachment; filename="rules.yaml"'}
    return Response(_lines(text), media_type="application/yaml", headers=headers)


@router.post("/draft/save")
def save(
    request: Request, services: ServicesDep, person: RuleReader, text: Text, reason: Reason = ""
) -> Response:
    """Save a draft as a version, which is a proposal until an administrator adopts it."""
    lines = _lines(text)
    checked = rule_changes.check(services, lines)
    again = partial(Draft, lines, checked, reason=reason)
    if not checked.valid:
        return _draft(request, person, services, again(problem="Not saved: it has errors."))
    if not reason.strip():
        return _draft(request, person, services, again(problem="Not saved: state the reason."))
    try:
        version = rule_changes.save(services, person, lines, reason.strip())
    except StateConflict as problem:
        return _draft(request, person, services, again(problem=f"Not saved: {problem}."))
    return RedirectResponse(f"/rules?saved={version}", status_code=303)


@router.get("/versions/{version}")
def one_version(
    request: Request, services: ServicesDep, person: RuleReader, version: VersionNumber
) -> Response:
    """Show the text of a version; administrators can adopt it here."""
    return _version(request, services, person, version)


@router.post("/versions/{version}/adopt")
async def adopt(
    request: Request,
    services: ServicesDep,
    person: Admin,
    version: VersionNumber,
    password: Password,
    reason: Reason = "",
    replaces: Annotated[int | None, Form(ge=1)] = None,
) -> Response:
    """Bring a version into force, after the administrator's password was checked."""

    def change() -> None:
        if not reason.strip():
            raise PersonError("state the reason")
        rule_changes.adopt(services, person, version, reason.strip(), replaces)

    try:
        await confirmed(request, services, person, password, change)
    except (PersonError, StateConflict, RuleFileError) as problem:
        return _version(request, services, person, version, problem)
    return RedirectResponse("/rules", status_code=303)


def _overview(request: Request, services: Services, person: Person, done: str) -> Response:
    now, loaded, faults = _in_force(services)
    precisions = None
    if person.role is PersonRole.SUPERVISOR:
        services.accesses.record(person.name, AuditAction.READ_STATISTICS, "precision of rules")
        precisions = precision.by_rule(services.store, person.scope)
    return render(
        request,
        "rules.html",
        person,
        in_force=now,
        rules=loaded,
        faults=faults,
        path_of_file=services.settings.rules,
        versioned=services.settings.rules_source is RulesSource.DATABASE,
        versions=rule_versions.history(services.store),
        precisions=precisions,
        done=done,
    )


def _in_force(services: Services) -> tuple[RulesInForce | None, RuleSet | None, list[str]]:
    try:
        now = rule_changes.in_force(services)
    except RuleFileError as problem:
        return None, None, problem.faults
    try:
        return now, rule_changes.parsed(services, now.text, now.name), []
    except RuleFileError as problem:
        return now, None, problem.faults


def _draft(request: Request, person: Person, services: Services, shown: Draft) -> Response:
    context: dict[str, Any] = {
        "draft": shown,
        "sizes": TRIAL_SIZES,
        "longest": MAX_TEXT,
        "versioned": services.settings.rules_source is RulesSource.DATABASE,
    }
    status = 422 if shown.problem or (shown.checked and not shown.checked.valid) else 200
    return render(request, "rules_draft.html", person, status=status, **context)


def _version(
    request: Request,
    services: Services,
    person: Person,
    version: int,
    problem: RapportError | None = None,
) -> Response:
    with as_http_errors():
        found = rule_versions.find(services.store, version)
    entries = rule_versions.history(services.store)
    now = next((each.version for each in entries if each.in_force), None)
    return render(
        request,
        "rules_version.html",
        person,
        status=422 if problem else 200,
        found=found,
        about=next((each for each in entries if each.version == version), None),
        in_force=now,
        versioned=services.settings.rules_source is RulesSource.DATABASE,
        problem=str(problem) if problem else "",
    )


def _lines(text: str) -> str:
    """The text with the line ends of a file; browsers send others.

    Raises:
        HTTPException: 413 if it is too long.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    if len(lines) > MAX_TEXT:
        raise HTTPException(413, f"a text of rules may have at most {MAX_TEXT} characters")
    return lines
