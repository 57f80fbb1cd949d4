"""Which bundle scores, what its card says, and the change to another one."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, Response

from stream_app.adaptation import promotion
from stream_app.errors import BundleError, RapportError
from stream_app.inference.bundles.bundle_pointer import Promoted
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.lifecycle import service_facts
from stream_app.web.console.confirmation import Password, confirmed
from stream_app.web.console.rendering import render
from stream_app.web.http.fields import NO_NUL
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Admin
from stream_app.work import bundle_folders

router = APIRouter(
    prefix="/admin/bundles", default_response_class=HTMLResponse, include_in_schema=False
)
CHANGES: Final = 20
"""Changes that the page lists, newest first; the audit trail has all."""
Reason = Annotated[str, Form(min_length=1, max_length=200, pattern=NO_NUL)]
Digest = Annotated[str, Form(pattern=r"^[0-9a-f]{64}$")]


@router.get("")
def bundles(request: Request, services: ServicesDep, person: Admin) -> Response:
    """Show the bundle in force, those in the shadow, and who changed it when."""
    return _bundles(request, services, person)


@router.post("/promote")
async def promote(
    request: Request,
    services: ServicesDep,
    person: Admin,
    password: Password,
    bundle: Digest,
    reason: Reason,
) -> Response:
    """Bring a bundle into force, which workers and consoles use after their restart."""

    def change() -> Promoted:
        pointer = services.settings.bundle
        promotion.require_file(pointer)
        for each in bundle_folders.choices(pointer):
            if each.digest == bundle:
                return promotion.promote(services.store, pointer, each.path, reason, person.name)
        raise BundleError("this bundle is in force already, or its folder is gone")

    return await _changed(request, services, person, password, change, bundle, reason)


@router.post("/rollback")
async def rollback(
    request: Request, services: ServicesDep, person: Admin, password: Password, reason: Reason
) -> Response:
    """Bring the bundle before the one in force into force again."""

    def change() -> Promoted:
        return promotion.rollback(services.store, services.settings.bundle, reason, person.name)

    return await _changed(request, services, person, password, change, "", reason)


async def _changed(
    request: Request,
    services: Services,
    person: Person,
    password: str,
    change: Callable[[], Promoted],
    bundle: str,
    reason: str,
) -> Response:
    try:
        now = await confirmed(request, services, person, password, change)
    except RapportError as problem:
        typed = {"bundle": bundle, "reason": reason}
        return _bundles(request, services, person, problem=str(problem), typed=typed)
    done = f"{now.bundle} is in force when workers and consoles have been restarted."
    return _bundles(request, services, person, done=done)


def _bundles(request: Request, services: Services, person: Person, **shown: Any) -> Response:
    pointer, store = services.settings.bundle, services.store
    used = {each.digest: each for each in service_facts.bundle_use(store)}
    in_force = bundle_folders.read(pointer)
    return render(
        request,
        "admin_bundles.html",
        person,
        status=422 if shown.get("problem") else 200,
        in_force=in_force,
        used=used.get(in_force.digest) if in_force else None,
        before=_before(pointer),
        choices=bundle_folders.choices(pointer),
        changeable=not pointer.is_dir(),
        pinned=services.settings.bundle_digest,
        shadows=service_facts.shadow_use(store),
        changes=audit.find(store, action=AuditAction.CHANGE_BUNDLE, limit=CHANGES).items,
        **{"typed": {}, **shown},
    )


def _before(pointer: Path) -> Promoted | None:
    """The bundle that a roll back would bring into force."""
    promoted = bundle_folders.promoted(pointer)
    return promoted[-2] if len(promoted) > 1 else None
