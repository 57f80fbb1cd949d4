"""The page on which people change their own password."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, Response

from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import PersonError
from stream_app.web.console.rendering import render
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import (
    Member,
    address_of_client,
    authenticate,
    new_sign_in,
    remember_sign_in,
)
from stream_app.work.passwords import MAX_CHARS, MIN_CHARS, hash_new_password

router = APIRouter(prefix="/password", default_response_class=HTMLResponse, include_in_schema=False)
Password = Annotated[str, Form(max_length=MAX_CHARS)]


@router.get("")
def password_page(request: Request, services: ServicesDep, person: Member) -> Response:
    """Show the form; accounts that sign in elsewhere have no password to change."""
    has_password = services.people.password_hash(person.name) is not None
    return render(request, "password.html", person, has_password=has_password, shortest=MIN_CHARS)


@router.post("")
async def change_password(
    request: Request,
    services: ServicesDep,
    person: Member,
    current: Password,
    new: Password,
    repeated: Password,
) -> Response:
    """Change the password; other browsers of this person are signed out."""
    address = address_of_client(request)

    def change() -> tuple[str | None, str]:
        """The token of a new sign-in, or None and what is wrong."""
        if authenticate(services, person.name, current, address) is None:
            return None, "The current password is wrong."
        if new != repeated:
            return None, "The new passwords differ."
        try:
            hashed = hash_new_password(new, person.name)
        except PersonError as problem:
            return None, f"{problem}."
        services.people.set_password(person.name, hashed)
        audit.record(services.store, person.name, AuditAction.CHANGE_ACCOUNT, detail="own password")
        return new_sign_in(services, person.name), ""

    token, problem = await services.sign_in_queue.run(change)
    if token is not None:
        remember_sign_in(request, token)
    return render(
        request,
        "password.html",
        person,
        status=422 if problem else 200,
        has_password=True,
        shortest=MIN_CHARS,
        problem=problem,
        changed=token is not None,
    )
