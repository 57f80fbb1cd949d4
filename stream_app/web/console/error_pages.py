"""Error pages: not signed in, not allowed, not found, internal errors."""

from http import HTTPStatus
from typing import Final, cast
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from stream_app.errors import StoreUnavailable
from stream_app.store.accounts.people import OutsideTeam, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.alerts.alert_actions import NoSuchAlert, NoSuchMute
from stream_app.store.database.pages import BadCursor
from stream_app.web.console.rendering import address_of, render
from stream_app.web.http.security import HEADERS
from stream_app.web.http.sign_in_queue import RETRY_AFTER_SECONDS, SignInQueueFull
from stream_app.web.problems import record_refusal, record_unknown_sender
from stream_app.web.sign_in.auth import PASSWORD_PAGE, NotSignedIn, PasswordChangeNeeded, signed_in

TITLES: Final = {
    403: "You do not have access",
    404: "Not found",
    405: "This address cannot be opened directly",
    413: "Too much data",
    422: "Invalid input",
    429: "Too many attempts to sign in",
    500: "Something went wrong",
    503: "The database is unavailable",
}
ADVICE: Final = {
    403: "If you need access, ask an administrator of Rapport.",
    404: "It may have been deleted, or belong to a team that you may not see.",
    405: "Go back and try again from the page.",
    413: "Go back and try again with less text.",
    422: "Go back, check what you entered, and try again.",
    429: "Wait a little, then try again. Each wrong password makes the wait longer.",
    500: "The error was logged. Try again; if it happens again, tell your Rapport administrator.",
    503: "No event is lost: what arrives meanwhile is scored later. Try again in a minute.",
}

OWN_ADVICE: Final = {
    PersonRole.ADMIN: "Administrators manage accounts and settings; they do not answer alerts or "
    "read transcripts.",
}
"""Instead of the general advice for 403, which would tell administrators to ask themselves."""
ROLE_CAN: Final = {
    PersonRole.COUNSELLOR: "As a counsellor, you can open your own sessions and the feedback on "
    "them.",
    PersonRole.SUPERVISOR: "As a supervisor, you can open the sessions, alerts and counsellors of "
    "your team.",
    PersonRole.ANALYST: "As an analyst, you can open analytics, calibration reports and exports "
    "without names or text.",
    PersonRole.ADMIN: "As an administrator, you can open the administration pages, and the "
    "scores of all sessions without text.",
    PersonRole.INGEST: "This account is for a program that sends events to the API. It cannot open "
    "pages.",
    PersonRole.STUDY: "This account is for exports of an approved study through the API. It cannot "
    "open pages.",
}
_LIVE: Final = ("/", "Live sessions")
_PAST: Final = ("/sessions", "Past sessions")
HOMES: Final[dict[PersonRole, tuple[tuple[str, str], ...]]] = {
    PersonRole.COUNSELLOR: (("/me", "My sessions"), _LIVE, _PAST),
    PersonRole.SUPERVISOR: (_LIVE, ("/alerts", "Alerts"), _PAST),
    PersonRole.ANALYST: (("/analytics", "Analytics"), _LIVE, _PAST),
    PersonRole.ADMIN: (("/admin", "Administration"), _LIVE, _PAST),
    PersonRole.INGEST: (),
    PersonRole.STUDY: (),
}
"""Where an error page leads, by role."""


def error_page(
    request: Request, status: int, detail: str = "", title: str = "", advice: str = ""
) -> Response:
    """Render the page for a status; ``detail`` is shown if it says more than the status."""
    person = _reader(request, status)
    role = person.role if person is not None else None
    if role in OWN_ADVICE and status == HTTPStatus.FORBIDDEN:
        advice = advice or OWN_ADVICE[role]
    return render(
        request,
        "error.html",
        person,
        role_can=ROLE_CAN[role] if role is not None else "",
        homes=HOMES[role] if role is not None else [_LIVE],
        status=status,
        code=status,
        title=title or TITLES.get(status, "That did not work"),
        detail=detail,
        advice=advice or ADVICE.get(status, "Go back and try again."),
    )


def _reader(request: Request, status: int) -> Person | None:
    """Who is signed in, for the navigation; nobody where looking that up could fail again."""
    if hasattr(request.state, "person"):
        return cast("Person | None", request.state.person)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return None
    try:
        return signed_in(request, request.app.state.services)
    except StoreUnavailable:
        return None


def add_error_pages(app: FastAPI) -> None:
    """Make the console answer errors with pages; the API is a separate application."""
    app.add_exception_handler(NotSignedIn, _to_sign_in)
    app.add_exception_handler(
        PasswordChangeNeeded, lambda *_: RedirectResponse(PASSWORD_PAGE, status_code=303)
    )
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, lambda request, _: error_page(request, 422))
    app.add_exception_handler(ValidationError, lambda request, _: error_page(request, 422))
    for missing in (NoSuchAlert, NoSuchMute, BadCursor):
        app.add_exception_handler(missing, lambda request, _: error_page(request, 404))
    app.add_exception_handler(
        OutsideTeam, lambda request, problem: error_page(request, 403, str(problem))
    )
    app.add_exception_handler(SignInQueueFull, _queue_full)
    app.add_exception_handler(StoreUnavailable, lambda request, _: error_page(request, 503))
    app.add_exception_handler(Exception, _internal_error)


def _to_sign_in(request: Request, _: Exception) -> Response:
    """Redirect to the sign-in form, which leads back to the requested page."""
    if "authorization" in request.headers:
        record_unknown_sender(request)
    wanted = quote(address_of(request), safe="") if request.method == "GET" else "%2F"
    return RedirectResponse(f"/sign-in?to={wanted}", status_code=303)


def _http(request: Request, problem: Exception) -> Response:
    if not isinstance(problem, HTTPException):
        raise problem
    record_refusal(request, problem.status_code)
    with_detail = (HTTPStatus.FORBIDDEN, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS)
    says_more = problem.detail != HTTPStatus(problem.status_code).phrase
    detail = problem.detail if says_more and problem.status_code in with_detail else ""
    response = error_page(request, problem.status_code, detail)
    response.headers.update(problem.headers or {})
    return response


def _queue_full(request: Request, problem: Exception) -> Response:
    response = error_page(
        request,
        503,
        str(problem),
        title="Too many people are signing in",
        advice="Go back and try again in a few seconds.",
    )
    response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response


def _internal_error(request: Request, _: Exception) -> Response:
    response = error_page(request, 500)
    response.headers.update(HEADERS)  # this response bypasses the middleware that adds them
    return response
