"""Signing in at an identity provider: leaving for it and coming back."""

import secrets
from typing import Final

import msgspec
import structlog
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.concurrency import run_in_threadpool

from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.web.console.rendering import render
from stream_app.web.console.sign_in.account import first_page, local_path
from stream_app.web.http.identity_provider import (
    Attempt,
    ClaimMissing,
    IdentityProvider,
    ProviderUnavailable,
    SignInRefused,
)
from stream_app.web.http.security import is_https
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import new_sign_in, remember_sign_in
from stream_app.web.sign_in.single_sign_on import account_of

log = structlog.get_logger(__name__)
COOKIE: Final = "rapport-oidc"
SECONDS: Final = 600
"""Time for signing in at the provider."""
REFUSED: Final = "You could not be signed in. Ask your Rapport administrator for access."
router = APIRouter(
    prefix="/sign-in/oidc", default_response_class=HTMLResponse, include_in_schema=False
)


@router.get("")
async def leave(request: Request, services: ServicesDep, to: str = "/") -> Response:
    """Send the browser to the identity provider.

    The attempt is kept in a signed cookie. Unlike the sign-in's it is ``Lax``, because the
    provider, another site, sends the browser back.
    """
    try:
        address, attempt = await _provider(services).begin(local_path(to))
    except ProviderUnavailable as problem:
        raise HTTPException(503, str(problem)) from None
    answer = RedirectResponse(address, status_code=303)
    answer.set_cookie(
        _cookie_name(request, services),
        _signer(services).dumps(msgspec.to_builtins(attempt)),
        max_age=SECONDS,
        httponly=True,
        samesite="lax",
        secure=is_https(request.scope, services.settings.web_https),
    )
    return answer


@router.get("/callback")
async def come_back(
    request: Request, services: ServicesDep, code: str = "", state: str = "", error: str = ""
) -> Response:
    """Complete the sign-in.

    The answer is a page that opens the wanted one: a redirect would belong to the provider's
    navigation, in which browsers do not send the cookie.
    """
    provider = _provider(services)
    try:
        attempt = _attempt(request, services, state)
        if error or not code:
            raise SignInRefused("the provider refused the sign-in")
        claims = await provider.finish(attempt, code)
        person, token = await run_in_threadpool(_sign_in, services, provider.issuer, claims)
    except SignInRefused as problem:
        await run_in_threadpool(_audit_refusal, services, str(problem))
        why = _explained(problem) if isinstance(problem, ClaimMissing) else ""
        answer = render(request, "sign_in_refused.html", status=403, words=REFUSED, why=why)
    except ProviderUnavailable as problem:
        raise HTTPException(503, str(problem)) from None
    else:
        remember_sign_in(request, token)
        answer = render(request, "signed_in.html", to=first_page(person, attempt.to))
    answer.delete_cookie(
        _cookie_name(request, services),
        secure=is_https(request.scope, services.settings.web_https),
        httponly=True,
        samesite="lax",
    )
    return answer


def _sign_in(services: Services, issuer: str, claims: dict[str, object]) -> tuple[Person, str]:
    """Find the account and create the token of its cookie."""
    person = account_of(services, issuer, claims)
    audit.record(services.store, person.name, AuditAction.SIGN_IN, detail="single sign-on")
    return person, new_sign_in(services, person.name)


def _explained(problem: ClaimMissing) -> str:
    """What to tell the administrator; nothing about the person, so it is logged, too."""
    log.warning("sign_in.claim_missing", problem=str(problem))
    words = str(problem)
    return f"{words[0].upper()}{words[1:]}."


def _audit_refusal(services: Services, why: str) -> None:
    audit.record(services.store, audit.SINGLE_SIGN_ON, AuditAction.SIGN_IN_REFUSED, detail=why)


def _attempt(request: Request, services: Services, state: str) -> Attempt:
    """The attempt that this browser began.

    Raises:
        SignInRefused: it began none, too long ago, or another one.
    """
    kept = request.cookies.get(_cookie_name(request, services), "")
    try:
        attempt = msgspec.convert(_signer(services).loads(kept, max_age=SECONDS), Attempt)
    except (BadData, msgspec.ValidationError):
        raise SignInRefused("the browser began no sign-in, or too long ago") from None
    if not secrets.compare_digest(attempt.state.encode(), state.encode()):
        raise SignInRefused("the state is another sign-in's")
    return attempt


def _provider(services: Services) -> IdentityProvider:
    if services.identity_provider is None:
        raise HTTPException(404)
    return services.identity_provider


def _signer(services: Services) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(services.store.cookie_key(), salt=COOKIE)


def _cookie_name(request: Request, services: Services) -> str:
    secure = is_https(request.scope, services.settings.web_https)
    return f"__Host-{COOKIE}" if secure else COOKIE
