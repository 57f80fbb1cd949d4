"""Consent in the console: looked up by session or person, and withdrawn for them."""

from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, Response

from stream_app.contracts.events import MAX_ID_CHARS
from stream_app.core.session.consent import OnWithdrawal
from stream_app.errors import RapportError
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.lifecycle import erasure_plans
from stream_app.store.lifecycle.erasure_plans import Plan
from stream_app.store.sessions import consents
from stream_app.store.sessions.consents import SessionConsent
from stream_app.web import consent_log
from stream_app.web.console.confirmation import Password, confirmed
from stream_app.web.console.rendering import render
from stream_app.web.http.fields import NO_NUL
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Admin

router = APIRouter(
    prefix="/admin/consent", default_response_class=HTMLResponse, include_in_schema=False
)
MOST_SESSIONS: Final = 200
"""Sessions of one person that the page lists and withdraws."""
SOURCE: Final = "administrator"
Name = Annotated[str, Form(max_length=MAX_ID_CHARS, pattern=NO_NUL)]


@dataclass(frozen=True, slots=True)
class Found:
    """Sessions with their consent, and how much of them a withdrawal would concern."""

    sessions: list[SessionConsent]
    open: list[str]
    extent: Plan


@router.get("")
def consent_page(request: Request, services: ServicesDep, person: Admin) -> Response:
    """Ask whose consent is meant."""
    return _consent(request, services, person)


@router.post("/find")
def find(request: Request, services: ServicesDep, person: Admin, speaker: Name = "") -> Response:
    """Show the consent of a session, or of a person's sessions; recorded for each."""
    try:
        found = _find(services, speaker)
    except RapportError as problem:
        problem_words = {"problem": str(problem), "refusal": "Not found"}
        return _consent(request, services, person, speaker, **problem_words)
    named = [each.session_id for each in found.sessions]
    action = AuditAction.READ_RECORDS
    audit.record_all(services.store, person.name, action, named, "consents")
    return _consent(request, services, person, speaker, found=found)


@router.post("")
async def withdraw(
    request: Request, services: ServicesDep, person: Admin, password: Password, speaker: Name = ""
) -> Response:
    """Withdraw the consent of these sessions: a worker applies the records that are sent here."""
    shown: dict[str, Any] = {}
    try:
        shown["found"] = found = await services.sign_in_queue.run(lambda: _find(services, speaker))
        if not found.open:
            raise RapportError("consent to all of these sessions is withdrawn or refused already")
        await confirmed(request, services, person, password, lambda: None)
        for session_id in found.open:
            await consent_log.send(services, person, consent_log.withdrawal(session_id, SOURCE))
    except RapportError as problem:
        return _consent(request, services, person, speaker, problem=str(problem), **shown)
    return _consent(request, services, person, sent=found.extent)


def _find(services: Services, name: str) -> Found:
    name = name.strip()
    if not name:
        raise RapportError("name a session or a person")
    looked_up = consents.look_up(services.store, name, MOST_SESSIONS)
    if looked_up.more:
        raise RapportError(
            f"this person has more than {MOST_SESSIONS} sessions; withdraw their consent with "
            "`rapport consent record` on the server"
        )
    if not looked_up.sessions:
        raise RapportError("no stored session has this id, and no client this pseudonym or id")
    still = [
        each.session_id
        for each in looked_up.sessions
        if not each.withdrawn and each.consent is not False
    ]
    return Found(looked_up.sessions, still, erasure_plans.planned(services.store, still, []))


def _consent(
    request: Request, services: Services, person: Person, speaker: str = "", **shown: Any
) -> Response:
    status = 422 if shown.get("problem") else 200
    effect = services.settings.on_withdrawal
    return render(
        request,
        "admin_consent.html",
        person,
        status=status,
        speaker=speaker,
        keeps=effect is OnWithdrawal.KEEP,
        erases=effect is OnWithdrawal.ERASE,
        **shown,
    )
