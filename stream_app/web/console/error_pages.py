"""What people see instead of a page: not signed in, not allowed, not there, broken."""

from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from stream_app.errors import StoreUnavailable
from stream_app.store.alert_actions import NoSuchAlert, NoSuchMute
from stream_app.store.reading.pages import BadCursor
from stream_app.web.auth import NotSignedIn
from stream_app.web.console.rendering import address_of, render
from stream_app.web.security import HEADERS
from stream_app.web.sign_in_queue import RETRY_AFTER_SECONDS, SignInQueueFull

TITLES: Final = {
    403: "Not open to you",
    404: "Nothing here",
    405: "Not like this",
    413: "Too much at once",
    422: "Something is missing",
    429: "Too many attempts to sign in",
    500: "This should not have happened",
    503: "The database does not answer",
}
ADVICE: Final = {
    403: "Ask whoever runs Rapport for you if you need it.",
    404: "It may be gone, or belong to a team that you do not see.",
    405: "This address cannot be opened by itself. Go back and try again from the page.",
    413: "Go back and try again with less.",
    422: "Go back, look at what you filled in, and try again.",
    429: "Wait a little, then try again; each wrong password makes the wait longer.",
    500: "It has been written to the log. Try again; if it stays, tell whoever runs Rapport.",
    503: "Sessions are still scored and nothing is lost. Try again in a minute.",
}


def error_page(
    request: Request, status: int, said: str = "", title: str = "", advice: str = ""
) -> Response:
    """The page for a status; ``said`` is shown where it tells more than the status."""
    return render(
        request,
        "error.html",
        status=status,
        code=status,
        title=title or TITLES.get(status, "This did not work"),
        said=said,
        advice=advice or ADVICE.get(status, "Go back and try again."),
    )


def add_error_pages(app: FastAPI) -> None:
    """Answer with pages; the API is an application of its own."""
    app.add_exception_handler(NotSignedIn, _to_sign_in)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, lambda request, _: error_page(request, 422))
    app.add_exception_handler(ValidationError, lambda request, _: error_page(request, 422))
    for missing in (NoSuchAlert, NoSuchMute, BadCursor):
        app.add_exception_handler(missing, lambda request, _: error_page(request, 404))
    app.add_exception_handler(SignInQueueFull, _busy)
    app.add_exception_handler(StoreUnavailable, lambda request, _: error_page(request, 503))
    app.add_exception_handler(Exception, _broken)


def _to_sign_in(request: Request, _: Exception) -> Response:
    """The form, and back afterwards."""
    wanted = quote(address_of(request), safe="") if request.method == "GET" else "%2F"
    return RedirectResponse(f"/sign-in?to={wanted}", status_code=303)


def _http(request: Request, problem: Exception) -> Response:
    if not isinstance(problem, HTTPException):
        raise problem
    told = (HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)
    answer = error_page(
        request, problem.status_code, problem.detail if problem.status_code in told else ""
    )
    answer.headers.update(problem.headers or {})
    return answer


def _busy(request: Request, problem: Exception) -> Response:
    answer = error_page(
        request,
        503,
        str(problem),
        title="Too many at once",
        advice="Go back and try again in a few seconds.",
    )
    answer.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return answer


def _broken(request: Request, _: Exception) -> Response:
    answer = error_page(request, 500)
    answer.headers.update(HEADERS)  # this one is made outside the middleware that adds them
    return answer
