"""Who asks: a signed cookie for people, a bearer token for programs.

A cookie is sent with every request of a browser, so what changes something must also come from
the console's own pages (``Sec-Fetch-Site``, or ``Origin`` where a browser does not send it).
"""

import math
import secrets
from collections.abc import Callable
from typing import Annotated, Final

from fastapi import Depends, HTTPException, Request
from pwdlib import PasswordHash
from starlette.datastructures import URL

from stream_app.contracts.events import MAX_ID_CHARS
from stream_app.errors import RapportError
from stream_app.store import audit
from stream_app.store.attempts import TooManyAttempts
from stream_app.store.audit import Audited
from stream_app.store.people import Person, PersonRole
from stream_app.web.services import Services, Wired

COOKIE: Final = "rapport"
SIGN_IN: Final = "sign-in"
"""In the cookie: a token, so that a copy of the cookie is worth nothing after signing out."""
SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
_hashes = PasswordHash.recommended()
_NOBODY = _hashes.hash(secrets.token_hex(16))


class SignInNeeded(RapportError):
    """Nobody is signed in; pages send to the sign-in page, the API answers 401."""


def hash_password(password: str) -> str:
    """Argon2id, with the library's recommended cost."""
    return _hashes.hash(password)


def signed_in(
    services: Services, name: str, password: str, address: str | None = None
) -> Person | None:
    """The person, if the password is right; as slow for a name that does not exist.

    Takes a core and 64 MiB for a moment: call it through ``services.sign_ins``.

    Raises:
        HTTPException: 429, after too many wrong passwords; see ``store.attempts``.
    """
    name = name[:MAX_ID_CHARS].replace("\0", "")
    try:
        services.attempts.begin(name, address)
    except TooManyAttempts as problem:
        wait = {"Retry-After": str(math.ceil(problem.wait))}
        raise HTTPException(429, str(problem), wait) from None
    expected = services.people.password_hash(name)
    right = _hashes.verify(password, expected or _NOBODY)
    person = services.people.find(name) if right and expected else None
    if person is not None:
        services.attempts.succeeded(name, address)
    action = Audited.SIGN_IN if person else Audited.SIGN_IN_REFUSED
    audit.record(services.store, name, action)
    return person


def person_of(request: Request, services: Wired) -> Person:
    """Who asks.

    Raises:
        SignInNeeded: nobody, or somebody whose token or account is no longer good.
        HTTPException: 403 where a browser was led here by another site.
    """
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        person = services.people.of_token(token.strip())
    else:
        kept = request.session.get(SIGN_IN)
        person = services.people.of_token(kept) if kept else None
        if person is not None and request.method not in SAFE_METHODS:
            _check_same_site(request)
    if person is None:
        raise SignInNeeded
    return person


def _check_same_site(request: Request) -> None:
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    own = site in ("same-origin", "none") if site else _is_own(origin, request.url)
    if not own:
        raise HTTPException(403, "this request came from another site")


def from_here(request: Request) -> None:
    """For forms that need no sign-in: a browser was not led here by another site.

    Raises:
        HTTPException: 403, it was.
    """
    if "sec-fetch-site" in request.headers or "origin" in request.headers:
        _check_same_site(request)


def _is_own(origin: str | None, url: URL) -> bool:
    return origin is not None and URL(origin).netloc == url.netloc


SignedIn = Annotated[Person, Depends(person_of)]


def allowed(*roles: PersonRole) -> Callable[[Person], Person]:
    """A dependency that lets only these roles through."""

    def check(person: SignedIn) -> Person:
        if person.role not in roles:
            raise HTTPException(403, f"this is not open to the role {person.role.value}")
        return person

    return check


Member = Annotated[
    Person,
    Depends(
        allowed(PersonRole.COUNSELLOR, PersonRole.SUPERVISOR, PersonRole.ANALYST, PersonRole.ADMIN)
    ),
]
"""A person, of whatever role; not a program that only sends events."""
Reader = Annotated[Person, Depends(allowed(PersonRole.COUNSELLOR, PersonRole.SUPERVISOR))]
"""May read transcripts, within the own scope."""
Supervisor = Annotated[Person, Depends(allowed(PersonRole.SUPERVISOR))]
Admin = Annotated[Person, Depends(allowed(PersonRole.ADMIN))]
Sender = Annotated[Person, Depends(allowed(PersonRole.INGEST))]
"""Sends events, and does nothing else."""
Exporter = Annotated[
    Person,
    Depends(allowed(PersonRole.COUNSELLOR, PersonRole.SUPERVISOR, PersonRole.ANALYST)),
]
