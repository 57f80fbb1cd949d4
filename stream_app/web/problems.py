"""Errors of the API as problem details (RFC 9457)."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Annotated, Any, Final

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from stream_app.analytics.questions.attributes import AttributesError, NotEnabled
from stream_app.errors import BrokerUnavailable, RapportError, StoreError, StoreUnavailable
from stream_app.extras import ExtraMissing
from stream_app.findings.exports.rollups import AllTeamsOnly, ViewsMissing
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import OutsideTeam, Person, PersonError
from stream_app.store.accounts.studies import StudyRefused
from stream_app.store.alerts.alert_actions import NoSuchAlert, NoSuchMute
from stream_app.store.database.pages import BadCursor
from stream_app.store.sessions import sessions
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.ingest_keys import KeyBusy, KeyReused
from stream_app.web.live.live_hub import TooManyClients
from stream_app.web.services import Services
from stream_app.web.sign_in.auth import NotSignedIn, PasswordChangeNeeded

log = structlog.get_logger(__name__)

MEDIA_TYPE: Final = "application/problem+json"
TYPE_PREFIX: Final = "urn:rapport:problem:"
RETRY_AFTER_SECONDS: Final = 5
KEY_RETRY_SECONDS: Final = 2
INTERNAL: Final = "internal error; see the service's log"
NOT_SIGNED_IN: Final = "sign in, or send a token: Authorization: Bearer rapport_…"
MEANINGS: Final = {
    400: "The cursor is not from this list, or the body cannot be parsed",
    401: "Not signed in: send a token",
    403: "Not allowed for this role or access scope, or the request came from another site",
    404: "Does not exist within your access scope",
    409: "Not possible in the current state",
    413: "The request is too large",
    415: "Unsupported content type",
    422: "The request is invalid; `errors` lists the invalid parts",
    429: "Too many requests; retry after `Retry-After` seconds",
    500: "Internal error; the details are only in the service's log",
    503: "A part of the service is unavailable or busy; retry after `Retry-After` seconds",
}
NAMES: Final = {
    400: "bad-request",
    401: "not-signed-in",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    409: "conflict",
    413: "too-large",
    415: "unsupported-media-type",
    422: "invalid",
    429: "too-many-requests",
    500: "mistake",
}
_KNOWN: Final[dict[type[RapportError], tuple[int, str]]] = {
    BadCursor: (400, "bad-cursor"),
    NoSuchAlert: (404, "not-found"),
    NoSuchMute: (404, "not-found"),
    StudyRefused: (403, "study-refused"),
    AllTeamsOnly: (403, "all-teams-only"),
    ViewsMissing: (409, "views-missing"),
    PersonError: (409, "conflict"),
    OutsideTeam: (403, "forbidden"),
    PasswordChangeNeeded: (403, "password-change-needed"),
    TooManyClients: (503, "too-many-streams"),
    NotEnabled: (409, "not-enabled"),
    AttributesError: (409, "attributes-unusable"),
    ExtraMissing: (503, "extra-missing"),
    KeyReused: (422, "key-reused"),
    KeyBusy: (409, "key-busy"),
    StoreUnavailable: (503, "database-away"),
    BrokerUnavailable: (503, "broker-away"),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One invalid part of a request."""

    where: Annotated[str, Field(description="Location in the request, such as `query.limit`")]
    message: Annotated[str, Field(description="What is wrong; never quotes the value")]


@dataclass(frozen=True, slots=True)
class Problem:
    """Problem details (RFC 9457), the body of every error response."""

    type: Annotated[str, Field(description="Machine-readable identifier, `urn:rapport:problem:…`")]
    title: Annotated[str, Field(description="The kind of problem, the same for each type")]
    status: Annotated[int, Field(ge=400, le=599, description="The HTTP status")]
    detail: Annotated[str, Field(description="What is wrong with this request, and what to do")]
    errors: Annotated[list[Fault], Field(description="Invalid parts of the request, if any")]


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe error responses of a route in the OpenAPI document."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": MEANINGS[status], "content": content} for status in statuses}


def problem_response(
    status: int,
    detail: str,
    *,
    name: str | None = None,
    errors: list[Fault] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Build a response with problem details."""
    return as_response(_problem(status, detail, name, errors), headers)


def _problem(
    status: int, detail: str, name: str | None = None, errors: list[Fault] | None = None
) -> Problem:
    slug = name or NAMES.get(status) or f"http-{status}"
    return Problem(TYPE_PREFIX + slug, HTTPStatus(status).phrase, status, detail, errors or [])


def as_response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """The response with these problem details."""
    body = json.dumps(
        asdict(problem)
    )  # ASCII only, so that any text from the request can be encoded
    return Response(body, problem.status, headers, MEDIA_TYPE)


def describe(problem: HTTPException | RapportError) -> tuple[Problem, dict[str, str]]:
    """Problem details of an error, and the headers that belong to them."""
    if isinstance(problem, HTTPException):
        return _problem(problem.status_code, str(problem.detail)), dict(problem.headers or {})
    for kind, (status, name) in _KNOWN.items():
        if isinstance(problem, kind):
            return _problem(status, str(problem), name), _retry(problem, status)
    log.error("api.failed", problem=type(problem).__name__)
    return _problem(500, INTERNAL), {}


def add_handlers(app: FastAPI) -> None:
    """Make this application answer every error with problem details."""
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(NotSignedIn, _not_signed_in)
    app.add_exception_handler(RapportError, _rapport)
    app.add_exception_handler(Exception, _unexpected)


def _invalid(_: Request, problem: Exception) -> Response:
    found: list[Any] = list(getattr(problem, "errors", list)())
    faults = [Fault(".".join(map(str, error["loc"])), error["msg"]) for error in found]
    return problem_response(422, "the request is invalid", errors=faults)


def _http(request: Request, problem: Exception) -> Response:
    if not isinstance(problem, HTTPException):
        raise problem
    record_refusal(request, problem.status_code)
    return problem_response(problem.status_code, str(problem.detail), headers=problem.headers)


def record_refusal(request: HTTPConnection, status: int) -> None:
    """Audit a refused attempt; without a database the refusal itself is still sent."""
    services: Services = request.app.state.services
    try:
        _record_refusal(services, request, status)
    except StoreError as problem:
        log.warning("audit.refusal_lost", problem=str(problem))


def record_unknown_sender(request: HTTPConnection) -> None:
    """Audit a request without a valid sign-in; without a database it is still refused."""
    services: Services = request.app.state.services
    try:
        services.unknown_senders.record(request)
    except StoreError as problem:
        log.warning("audit.refusal_lost", problem=str(problem))


def _not_signed_in(request: Request, _: Exception) -> Response:
    record_unknown_sender(request)
    return not_signed_in()


def not_signed_in() -> Response:
    """The response to a request without a valid token or sign-in."""
    return problem_response(401, NOT_SIGNED_IN, headers={"WWW-Authenticate": "Bearer"})


def _rapport(request: Request, problem: Exception) -> Response:
    if not isinstance(problem, RapportError) or not isinstance(problem, tuple(_KNOWN)):
        return _unexpected(request, problem)
    return as_response(*describe(problem))


def _retry(problem: RapportError, status: int) -> dict[str, str]:
    if isinstance(problem, KeyBusy):
        return {"Retry-After": str(min(KEY_RETRY_SECONDS, math.ceil(problem.wait)))}
    return {"Retry-After": str(RETRY_AFTER_SECONDS)} if status == 503 else {}


def _unexpected(request: Request, problem: Exception) -> Response:
    route = getattr(request.scope.get("route"), "path", "")
    log.error("api.failed", route=route, method=request.method, problem=type(problem).__name__)
    return problem_response(500, INTERNAL)


def _record_refusal(services: Services, request: HTTPConnection, status: int) -> None:
    """Record a refused attempt of a signed-in person: 403, or 404 for an existing session."""
    person: Person | None = getattr(request.state, "person", None)
    if person is None:
        return
    session_id = request.path_params.get("session_id")
    exists = session_id is not None and sessions.bundle_of(services.store, ALL_SESSIONS, session_id)
    if status == 403 or (status == 404 and exists):  # HTTP
        route = getattr(request.scope.get("route"), "path_format", "")
        method = request.scope.get("method", "WebSocket")
        detail = f"{status} {method} {request.scope.get('root_path', '')}{route}"
        shown = session_id if exists else None
        services.accesses.record(person.name, AuditAction.REFUSED, detail, shown)
