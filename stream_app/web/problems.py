"""Errors of the API as problem details (RFC 9457): what was wrong, and what to do."""

import json
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

from stream_app.errors import BrokerUnavailable, RapportError, StoreUnavailable
from stream_app.store.alert_actions import NoSuchAlert, NoSuchMute
from stream_app.store.people import PersonError
from stream_app.store.reading.pages import BadCursor
from stream_app.web.auth import SignInNeeded
from stream_app.web.live import TooManyClients

log = structlog.get_logger(__name__)

MEDIA_TYPE: Final = "application/problem+json"
TYPE_PREFIX: Final = "urn:rapport:problem:"
RETRY_AFTER_SECONDS: Final = 5
NOT_SIGNED_IN: Final = "sign in, or send a token: Authorization: Bearer rapport_…"
MEANINGS: Final = {
    400: "A cursor that this list did not give out, or a body that cannot be read",
    401: "Nobody is signed in: send a token",
    403: "Not open to this role or scope, or a browser was led here by another site",
    404: "There is nothing of this name within the own scope",
    409: "It cannot be done as things stand",
    413: "More than is taken in one request",
    415: "A body of a type that is not taken here",
    422: "Part of the request is not as documented; `errors` says which",
    429: "Too many requests; `Retry-After` says how many seconds to wait",
    500: "The service made a mistake; nothing of it is told here, its log says more",
    503: "The database or the broker is away; `Retry-After` says how many seconds to wait",
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
    PersonError: (409, "conflict"),
    TooManyClients: (503, "too-many-streams"),
    StoreUnavailable: (503, "database-away"),
    BrokerUnavailable: (503, "broker-away"),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that was wrong with a request."""

    where: Annotated[str, Field(description="Place in the request, as in `query.limit`")]
    message: Annotated[str, Field(description="What is wrong there; the value is not repeated")]


@dataclass(frozen=True, slots=True)
class Problem:
    """Problem details (RFC 9457). Every error of the API looks like this."""

    type: Annotated[str, Field(description="A name for programs, `urn:rapport:problem:…`")]
    title: Annotated[str, Field(description="The kind of problem, the same each time")]
    status: Annotated[int, Field(ge=400, le=599, description="The HTTP status")]
    detail: Annotated[str, Field(description="What was wrong this time, and what to do")]
    errors: Annotated[list[Fault], Field(description="Invalid parts of the request, if any")]


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Responses of a route for the API's document, besides those that every route has."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": MEANINGS[status], "content": content} for status in statuses}


def answer(
    status: int,
    detail: str,
    *,
    name: str | None = None,
    errors: list[Fault] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A response with problem details."""
    slug = name or NAMES.get(status) or f"http-{status}"
    problem = Problem(TYPE_PREFIX + slug, HTTPStatus(status).phrase, status, detail, errors or [])
    body = json.dumps(asdict(problem))  # ASCII: whatever a client wrote can be sent back
    return Response(body, status, headers, MEDIA_TYPE)


def attach(app: FastAPI) -> None:
    """Answer every error of this application with problem details."""
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(SignInNeeded, _nobody)
    app.add_exception_handler(RapportError, _rapport)
    app.add_exception_handler(Exception, _unexpected)


def _invalid(_: Request, problem: Exception) -> Response:
    found: list[Any] = list(getattr(problem, "errors", list)())
    faults = [Fault(".".join(map(str, error["loc"])), error["msg"]) for error in found]
    return answer(422, "the request does not fit the API's document", errors=faults)


def _http(_: Request, problem: Exception) -> Response:
    if not isinstance(problem, HTTPException):
        raise problem
    return answer(problem.status_code, str(problem.detail), headers=problem.headers)


def _nobody(_: Request, __: Exception) -> Response:
    return answer(401, NOT_SIGNED_IN, headers={"WWW-Authenticate": "Bearer"})


def _rapport(request: Request, problem: Exception) -> Response:
    for kind, (status, name) in _KNOWN.items():
        if isinstance(problem, kind):
            return answer(status, str(problem), name=name, headers=_retry(status))
    return _unexpected(request, problem)


def _retry(status: int) -> dict[str, str]:
    return {"Retry-After": str(RETRY_AFTER_SECONDS)} if status == 503 else {}


def _unexpected(request: Request, problem: Exception) -> Response:
    route = getattr(request.scope.get("route"), "path", "")
    log.error("api.failed", route=route, method=request.method, problem=type(problem).__name__)
    return answer(500, "the service made a mistake; its log says more")
