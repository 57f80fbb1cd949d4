"""Signing in and out, and the choice of appearance."""

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.web.console.rendering import APPEARANCE, APPEARANCES, render
from stream_app.web.http.security import is_https
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import (
    SIGN_IN,
    address_of_client,
    authenticate,
    new_sign_in,
    remember_sign_in,
    require_same_site,
)

YEAR = 365 * 24 * 3600
HOMES: Final = {
    PersonRole.ADMIN: "/admin",
    PersonRole.COUNSELLOR: "/me",
    PersonRole.ANALYST: "/analytics",
}
"""Where people begin who asked for no page; others begin at the wall."""
SAME_SITE = [Depends(require_same_site)]
router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)


@router.get("/sign-in")
def sign_in_page(request: Request, services: ServicesDep, to: str = "/") -> Response:
    """Show the sign-in form."""
    return _form(request, services, to)


@router.post("/sign-in", dependencies=SAME_SITE)
async def sign_in(
    request: Request,
    services: ServicesDep,
    name: Annotated[str, Form()],
    password: Annotated[str, Form()],
    to: Annotated[str, Form()] = "/",
) -> Response:
    """Sign in and redirect to the page that was requested, otherwise to the role's home."""
    address = address_of_client(request)

    def check_password() -> tuple[Person, str] | None:
        person = authenticate(services, name, password, address)
        return (person, new_sign_in(services, person.name)) if person is not None else None

    found = await services.sign_in_queue.run(check_password)
    if found is None:
        return _form(request, services, to, refused=True)
    person, token = found
    remember_sign_in(request, token)
    return RedirectResponse(first_page(person, to), status_code=303)


@router.post("/sign-out", dependencies=SAME_SITE)
def sign_out(request: Request, services: ServicesDep) -> Response:
    """Sign out and revoke the token, so that copies of the cookie are invalid, too."""
    if token := request.session.get(SIGN_IN):
        services.people.sign_out(token)
    request.session.clear()
    return RedirectResponse("/sign-in", status_code=303)


@router.post("/appearance", dependencies=SAME_SITE)
def appearance(
    request: Request,
    services: ServicesDep,
    chosen: Annotated[str, Form()],
    to: Annotated[str, Form()] = "/",
) -> Response:
    """Choose light, dark or the system's appearance; stored in a cookie."""
    answer = RedirectResponse(local_path(to), status_code=303)
    if chosen in APPEARANCES:
        answer.set_cookie(
            APPEARANCE,
            chosen,
            max_age=YEAR,
            samesite="strict",
            httponly=True,
            secure=is_https(request.scope, services.settings.web_https),
        )
    return answer


def _form(request: Request, services: Services, to: str, *, refused: bool = False) -> Response:
    return render(
        request,
        "sign_in.html",
        status=401 if refused else 200,
        to=to,
        refused=refused,
        single_sign_on=services.identity_provider is not None,
    )


def first_page(person: Person, to: str) -> str:
    """The page after the sign-in: the one that was requested, or the role's home."""
    wanted = local_path(to)
    return HOMES.get(person.role, wanted) if wanted == "/" else wanted


def local_path(address: str) -> str:
    """The address if it is a path of this console, otherwise ``/``."""
    own = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if own and address.isprintable() else "/"
