"""Erasure and legal holds: what would go is counted first, and the password confirms it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, Response

from stream_app.contracts.events import MAX_ID_CHARS
from stream_app.errors import RapportError
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.lifecycle import erasure, holds
from stream_app.store.lifecycle.erasure_plans import Plan, planned
from stream_app.web.console.confirmation import Password, confirmed
from stream_app.web.console.rendering import render
from stream_app.web.http.fields import NO_NUL, Identifier
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Admin

router = APIRouter(prefix="/admin", default_response_class=HTMLResponse, include_in_schema=False)
MOST_SESSIONS: Final = 500
"""Sessions of one erasure here; more are left to the command line."""
Ids = Annotated[str, Form(max_length=MOST_SESSIONS * (MAX_ID_CHARS + 2), pattern=r"^[^\x00]*$")]
SpeakerId = Annotated[str, Form(max_length=MAX_ID_CHARS, pattern=r"^[^\x00]*$")]
Reason = Annotated[str, Form(max_length=holds.MAX_REASON_CHARS, pattern=NO_NUL)]


@dataclass(frozen=True, slots=True)
class Asked:
    """What was typed: session ids, one a line, and a speaker's id as in events."""

    sessions: str = ""
    speaker: str = ""

    def plan(self, services: Services) -> Plan:
        """Look up what would be erased.

        Raises:
            RapportError: nothing is named, too much is, or the speaker has no session.
        """
        ids = list(dict.fromkeys(filter(None, map(str.strip, self.sessions.splitlines()))))
        speakers = [self.speaker.strip()] if self.speaker.strip() else []
        if not ids and not speakers:
            raise RapportError("name sessions or a speaker")
        if any(len(each) > MAX_ID_CHARS for each in ids):
            raise RapportError(f"an id has at most {MAX_ID_CHARS} characters; write one a line")
        found = planned(services.store, ids, speakers)
        if len(found.sessions) > MOST_SESSIONS:
            raise RapportError(
                f"these are {len(found.sessions)} sessions; for more than {MOST_SESSIONS} use "
                "`rapport erase` on the server"
            )
        return found


@router.get("/erasure")
def erasure_page(request: Request, person: Admin) -> Response:
    """Ask what is to be erased."""
    return _erasure(request, person)


@router.post("/erasure/plan")
def plan(
    request: Request,
    services: ServicesDep,
    person: Admin,
    sessions: Ids = "",
    speaker: SpeakerId = "",
) -> Response:
    """Count what would be erased; nothing is changed."""
    asked = Asked(sessions, speaker)
    try:
        return _erasure(request, person, asked=asked, plan=asked.plan(services))
    except RapportError as problem:
        return _erasure(request, person, asked=asked, problem=str(problem), refusal="Not counted")


@router.post("/erasure")
async def erase(
    request: Request,
    services: ServicesDep,
    person: Admin,
    password: Password,
    sessions: Ids = "",
    speaker: SpeakerId = "",
) -> Response:
    """Erase; a worker withdraws messages and removes what is archived."""
    asked = Asked(sessions, speaker)
    seen: list[Plan] = []

    def change() -> Counter[str]:
        return _carried_out(services, person, seen[0])

    try:
        seen.append(await services.sign_in_queue.run(lambda: asked.plan(services)))
        removed = await confirmed(request, services, person, password, change)
    except RapportError as problem:
        shown = {"plan": seen[0]} if seen else {}
        return _erasure(request, person, asked=asked, problem=str(problem), **shown)
    return _erasure(request, person, removed=removed.most_common(), erased=seen[0])


def _carried_out(services: Services, person: Person, plan: Plan) -> Counter[str]:
    store, settings = services.store, services.settings
    erased = erasure.erase(store, plan.sessions, datetime.now(UTC), settings.session_topics)
    removed = Counter(erased.removed)
    for speaker in plan.speakers:
        removed += erasure.forget_counsellor(store, speaker)
    detail = f"{plan.extent.sessions} sessions, {plan.extent.turns} turns"
    audit.record(store, person.name, AuditAction.ERASE, detail=detail)
    store.scrub()
    return removed


@router.get("/holds")
def holds_page(request: Request, services: ServicesDep, person: Admin) -> Response:
    """List legal holds."""
    audit.record(services.store, person.name, AuditAction.READ_RECORDS, detail="hold list")
    return _holds(request, services, person)


@router.post("/holds")
async def hold(
    request: Request,
    services: ServicesDep,
    person: Admin,
    password: Password,
    session_id: Annotated[Identifier, Form()],
    reason: Reason = "",
) -> Response:
    """Put a session on hold."""
    session_id = session_id.strip()

    def change() -> None:
        holds.add(services.store, session_id, reason, person.name, datetime.now(UTC))

    return await _held(
        request, services, person, password, change, "The session is on hold.", session_id, reason
    )


@router.post("/holds/end")
async def end_hold(
    request: Request,
    services: ServicesDep,
    person: Admin,
    password: Password,
    session_id: Annotated[Identifier, Form()],
) -> Response:
    """End a session's hold."""

    def change() -> None:
        holds.remove(services.store, session_id, person.name)

    done = "The hold has ended: the session can expire and be erased again."
    return await _held(request, services, person, password, change, done)


async def _held(
    request: Request,
    services: Services,
    person: Person,
    password: str,
    change: Callable[[], None],
    done: str,
    session_id: str = "",
    reason: str = "",
) -> Response:
    try:
        await confirmed(request, services, person, password, change)
    except RapportError as problem:
        typed = {"session_id": session_id, "reason": reason}
        return _holds(request, services, person, problem=str(problem), typed=typed)
    return _holds(request, services, person, done=done)


def _holds(request: Request, services: Services, person: Person, **shown: Any) -> Response:
    status = 422 if shown.get("problem") else 200
    found = holds.find(services.store)
    shown = {"typed": {}, **shown}
    return render(request, "admin_holds.html", person, status=status, holds=found, **shown)


def _erasure(request: Request, person: Person, **shown: Any) -> Response:
    status = 422 if shown.get("problem") else 200
    shown = {"asked": Asked(), **shown}
    return render(request, "admin_erasure.html", person, status=status, **shown)
