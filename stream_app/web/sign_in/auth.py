"""Authentication and roles: a signed cookie for people, a bearer token for programs.

Browsers send the cookie with every request, so a request that changes something must also come
from the console's own pages (``Sec-Fetch-Site``, or ``Origin`` from browsers that lack it).
"""

import math
import secrets
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Annotated, Final, TypeVar

from fastapi import Depends, HTTPException, Request
from starlette.datastructures import URL
from starlette.requests import HTTPConnection

from stream_app.contracts.events import MAX_ID_CHARS
from stream_app.errors import RapportError
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole, Right
from stream_app.store.accounts.sign_in_throttle import TooManyAttempts
from stream_app.web.http.proxies import stated_account
from stream_app.web.services import Services, ServicesDep
from stream_app.work.account_changes import WITH_PASSWORD
from stream_app.work.passwords import hash_password, verify_password

SIGN_IN: Final = "sign-in"
"""Cookie key of the sign-in token. Signing out revokes the token, and with it any copied cookie."""
SIGN_IN_LASTS: Final = timedelta(hours=12)
"""At most, also with actions of the person."""
SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
OTHER_SITE: Final = "this request came from another site"
PASSWORD_PAGE: Final = "/password"  # noqa: S105  # an address
_needed_rights: Final[dict[Callable[..., object], frozenset[Right]]] = {}

Route = TypeVar("Route", bound=Callable[..., object])


class PasswordChangeNeeded(RapportError):
    """An administrator knows the password: pages redirect to the form that changes it."""

    def __init__(self) -> None:
        super().__init__("change the initial password in the console first")


class NotSignedIn(RapportError):
    """The request has no valid cookie or token: pages redirect to sign-in, the API answers 401."""


def authenticate(
    services: Services, name: str, password: str, address: str | None = None
) -> Person | None:
    """Check a password; None if it is wrong. Takes the same time for an unknown name.

    Uses one core and 64 MiB while it runs: call it through ``services.sign_in_queue``.

    Raises:
        HTTPException: 429 after too many wrong passwords; see ``store.sign_in_throttle``.
    """
    name = name[:MAX_ID_CHARS].replace("\0", "")
    try:
        services.attempts.begin(name, address)
    except TooManyAttempts as problem:
        action = AuditAction.SIGN_IN_REFUSED
        services.accesses.record(name, action, "too many attempts")
        wait = {"Retry-After": str(math.ceil(problem.wait))}
        raise HTTPException(429, str(problem), wait) from None
    expected = services.people.password_hash(name)
    dummy = _dummy_hash()  # for known names, too: the first call takes longer
    correct = verify_password(password, expected or dummy)
    person = services.people.find(name) if correct and expected else None
    if person is not None:
        services.attempts.succeeded(name, address)
    action = AuditAction.SIGN_IN if person else AuditAction.SIGN_IN_REFUSED
    audit.record(services.store, name, action)
    return person


@cache
def _dummy_hash() -> str:
    """Verified for unknown names, so that the response time does not reveal which names exist."""
    return hash_password(secrets.token_hex(16))


def address_of_client(request: Request) -> str | None:
    """The address of the browser, behind a trusted proxy as that one states it."""
    return request.client.host if request.client else None


def new_sign_in(services: Services, name: str) -> str:
    """Create the token of a browser's cookie, for a person who was just authenticated."""
    until = datetime.now(UTC) + SIGN_IN_LASTS
    return services.people.sign_in(name, until)


def remember_sign_in(request: Request, token: str) -> None:
    """Put the token into the cookie; an earlier sign-in's content is dropped."""
    request.session.clear()
    request.session[SIGN_IN] = token


def current_person(request: Request, services: ServicesDep) -> Person:
    """The signed-in person or program that sent the request.

    Raises:
        NotSignedIn: there is no token, or the token or account is no longer valid.
        HTTPException: 403 if another site caused the browser to send the request, or the token
            lacks a right.
        PasswordChangeNeeded: somebody else knows the person's password.
    """
    person = signed_in(request, services)
    request.state.person = person  # for error pages and the record of refused attempts
    if person is None:
        raise NotSignedIn
    by_cookie = not _bearer_token(request)
    if by_cookie and request.method not in SAFE_METHODS:
        _check_same_site(request)
    if person.rights is not None:
        _check_rights(request, person.rights)
    if by_cookie and person.initial_password and request.scope["path"] != PASSWORD_PAGE:
        raise PasswordChangeNeeded
    return person


def signed_in(request: Request, services: Services) -> Person | None:
    """Who sent the request, by its token or cookie; None without a valid one."""
    if token := _bearer_token(request):
        return services.people.find_by_token(token, used=_by_hand(request))
    settings = services.settings
    stated = stated_account(request, settings.web_user_header, settings.proxies)
    if stated is not None:
        person = services.people.find(stated)
        return person if person is not None and person.role in WITH_PASSWORD else None
    cookie_token = request.session.get(SIGN_IN) if "session" in request.scope else None
    if not cookie_token:
        return None
    return services.people.find_by_token(cookie_token, used=_by_hand(request))


def _bearer_token(request: HTTPConnection) -> str | None:
    """The token in the header; None without the header, a blank if it has no token."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return (token.strip() or " ") if scheme.lower() == "bearer" else None


def sending_program(connection: HTTPConnection, services: Services) -> Person:
    """The program that opens a WebSocket to send events; only a token counts, no cookie.

    Raises:
        NotSignedIn: there is no valid token.
        HTTPException: 403 if the account or the token may not send events.
    """
    token = _bearer_token(connection)
    person = services.people.find_by_token(token) if token else None
    connection.state.person = person
    if person is None:
        raise NotSignedIn
    if person.role is not PersonRole.INGEST:
        raise HTTPException(403, f"not allowed for the role {person.role.value}")
    if not person.has(Right.SEND_EVENTS):
        raise HTTPException(403, f"this token lacks the right {Right.SEND_EVENTS.value}")
    return person


def needs(*rights: Right) -> Callable[[Route], Route]:
    """Declare the rights that a token needs for a route.

    Pages and other routes without this declaration are closed to tokens with limited rights.
    """

    def mark(route: Route) -> Route:
        _needed_rights[route] = frozenset(rights)
        return route

    return mark


def _check_rights(request: Request, rights: frozenset[Right]) -> None:
    needed = _needed_rights.get(request.scope["endpoint"])
    if needed is None:
        raise HTTPException(403, "this token is for the API only")
    if missing := needed - rights:
        names = ", ".join(sorted(right.value for right in missing))
        raise HTTPException(403, f"this token lacks the right {names}")


def _by_hand(request: Request) -> bool:
    """Whether a person caused the request, not a script of an open page that updates itself."""
    background = request.headers.get("sec-fetch-mode", "navigate") != "navigate"
    return not background or request.method not in SAFE_METHODS


def _check_same_site(request: Request) -> None:
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    if site:
        if site not in ("same-origin", "none"):
            raise HTTPException(403, OTHER_SITE)
    elif not _is_same_host(origin, request.url):
        # Browsers send only ``Origin`` over plain HTTP; it has the address that the proxy serves.
        raise HTTPException(403, f"{OTHER_SITE}, or a proxy does not pass on the header Host")


def require_same_site(request: Request) -> None:
    """Reject cross-site form posts; for forms that need no sign-in.

    Requests without ``Sec-Fetch-Site`` and ``Origin`` pass: no browser sent them.

    Raises:
        HTTPException: 403 if the request came from another site.
    """
    if "sec-fetch-site" in request.headers or "origin" in request.headers:
        _check_same_site(request)


def _is_same_host(origin: str | None, url: URL) -> bool:
    return origin is not None and URL(origin).netloc == url.netloc


CurrentPerson = Annotated[Person, Depends(current_person)]


def require_role(*roles: PersonRole) -> Callable[[Person], Awaitable[Person]]:
    """Make a dependency that answers 403 to people without one of these roles."""

    async def check(person: CurrentPerson) -> Person:  # async, so as not to wait for a thread
        if person.role not in roles:
            raise HTTPException(403, f"not allowed for the role {person.role.value}")
        return person

    return check


Member = Annotated[
    Person,
    Depends(
        require_role(
            PersonRole.COUNSELLOR, PersonRole.SUPERVISOR, PersonRole.ANALYST, PersonRole.ADMIN
        )
    ),
]
"""A person with any role; excludes programs that only send events."""
Reader = Annotated[Person, Depends(require_role(PersonRole.COUNSELLOR, PersonRole.SUPERVISOR))]
"""May read transcripts within their access scope."""
Counsellor = Annotated[Person, Depends(require_role(PersonRole.COUNSELLOR))]
Supervisor = Annotated[Person, Depends(require_role(PersonRole.SUPERVISOR))]
Admin = Annotated[Person, Depends(require_role(PersonRole.ADMIN))]
ReportReader = Annotated[Person, Depends(require_role(PersonRole.SUPERVISOR, PersonRole.ANALYST))]
RuleReader = Annotated[Person, Depends(require_role(PersonRole.SUPERVISOR, PersonRole.ADMIN))]
"""May read, try and propose alert rules."""
Sender = Annotated[Person, Depends(require_role(PersonRole.INGEST))]
"""A program that may only send events."""
Exporter = Annotated[
    Person,
    Depends(require_role(PersonRole.COUNSELLOR, PersonRole.SUPERVISOR, PersonRole.ANALYST)),
]
TextExporter = Annotated[
    Person,
    Depends(
        require_role(
            PersonRole.COUNSELLOR, PersonRole.SUPERVISOR, PersonRole.ANALYST, PersonRole.STUDY
        )
    ),
]
"""May export sessions and turns; an account of a study only for that study."""
