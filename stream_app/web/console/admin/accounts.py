"""Accounts and tokens: created and ended by administrators, who confirm with their password.

An administrator learns a new account's initial password and may therefore not be its only reader:
the person must choose another one at the first sign-in. Tokens that read text or act are left to
`rapport people`, so that no administrator reads transcripts.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final

from fastapi import APIRouter, Form, HTTPException, Request
from fastapi.responses import HTMLResponse, Response

from stream_app.contracts.events import MAX_ID_CHARS
from stream_app.store.accounts.people import Person, PersonError
from stream_app.store.accounts.roles import RIGHTS, PersonRole, Right
from stream_app.store.lifecycle import service_facts
from stream_app.web.console.confirmation import Password, confirmed
from stream_app.web.console.rendering import render
from stream_app.web.http.fields import NO_NUL, Identifier
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Admin
from stream_app.work.account_changes import MAX_NAME, WITH_PASSWORD, AccountChanges

router = APIRouter(
    prefix="/admin/accounts", default_response_class=HTMLResponse, include_in_schema=False
)
TOKEN_RIGHTS: Final = (Right.READ_SCORES, Right.SEND_EVENTS, Right.READ_AUDIT)
"""Rights of tokens that can be made here."""
DAYS: Final = (30, 90, 365)
Field = Annotated[str, Form(max_length=MAX_ID_CHARS, pattern=r"^[^\x00]*$")]
Name = Annotated[str, Form(min_length=1, max_length=MAX_NAME, pattern=NO_NUL)]


@router.get("")
def accounts(request: Request, services: ServicesDep, person: Admin) -> Response:
    """List all accounts."""
    return _list(request, services, person)


@router.post("")
async def create(
    request: Request,
    services: ServicesDep,
    person: Admin,
    password: Password,
    name: Name,
    role: Annotated[PersonRole, Form()],
    team: Field = "",
    new_team: Field = "",
    all_teams: Annotated[bool, Form()] = False,
    speaker: Field = "",
    sign_in: Annotated[str, Form(pattern="^(password|other)$")] = "password",
) -> Response:
    """Create an account; its initial password is shown once."""

    def change() -> str | None:
        changes = AccountChanges(services.store, person.name)
        options: dict[str, Any] = {"all_teams": all_teams}
        place = (_team(services, team, new_team), speaker.strip() or None)
        if sign_in == "password" and role in WITH_PASSWORD:
            return changes.add_with_initial_password(name.strip(), role, *place, **options)
        changes.add(name.strip(), role, *place, **options)
        return None

    try:
        initial = await confirmed(request, services, person, password, change)
    except PersonError as problem:
        typed = {
            "name": name,
            "role": role.value,
            "team": team,
            "new_team": new_team,
            "all_teams": all_teams,
            "speaker": speaker,
            "sign_in": sign_in,
        }
        return _list(request, services, person, problem=str(problem), typed=typed)
    return _one(request, services, person, name.strip(), created=True, initial=initial)


@router.get("/{name:segment}")
def account(request: Request, services: ServicesDep, person: Admin, name: Identifier) -> Response:
    """Show one account with its tokens."""
    return _one(request, services, person, name)


@router.post("/{name:segment}/token")
async def new_token(
    request: Request,
    services: ServicesDep,
    person: Admin,
    name: Identifier,
    password: Password,
    label: Name,
    right: Annotated[Right, Form()],
    days: Annotated[int, Form(ge=1, le=max(DAYS))],
) -> Response:
    """Create a token, which is shown once."""

    def change() -> str:
        if right not in TOKEN_RIGHTS:
            raise PersonError("tokens that read text or act are made with `rapport people token`")
        changes = AccountChanges(services.store, person.name)
        return changes.new_token(name, label.strip(), days, rights=[right])

    return await _changed(
        request,
        services,
        person,
        name,
        password,
        lambda: {"token": change(), "label": label},
        opened="token",
        typed_label=label,
        typed_right=right.value,
        typed_days=str(days),
    )


@router.post("/{name:segment}/revoke")
async def revoke(
    request: Request,
    services: ServicesDep,
    person: Admin,
    name: Identifier,
    password: Password,
    label: Name,
) -> Response:
    """Revoke the tokens with a label."""

    def change() -> dict[str, str]:
        AccountChanges(services.store, person.name).revoke(name, label)
        return {"done": f"The tokens with the label {label} are revoked."}

    return await _changed(
        request, services, person, name, password, change, opened="revoke", typed_label=label
    )


@router.post("/{name:segment}/sign-out")
async def end_sign_ins(
    request: Request, services: ServicesDep, person: Admin, name: Identifier, password: Password
) -> Response:
    """Sign the person out of all browsers."""

    def change() -> dict[str, str]:
        ended = AccountChanges(services.store, person.name).end_sign_ins(name)
        return {"done": f"{ended} sign-ins ended."}

    return await _changed(request, services, person, name, password, change, opened="sign-out")


@router.post("/{name:segment}/password")
async def new_password(
    request: Request, services: ServicesDep, person: Admin, name: Identifier, password: Password
) -> Response:
    """Replace a forgotten password by an initial one, which is shown once."""

    def change() -> dict[str, str]:
        if name == person.name:
            raise PersonError("change your own password on its page: click on your name")
        return {"initial": AccountChanges(services.store, person.name).new_initial_password(name)}

    return await _changed(request, services, person, name, password, change, opened="password")


@router.post("/{name:segment}/teams")
async def change_teams(
    request: Request,
    services: ServicesDep,
    person: Admin,
    name: Identifier,
    password: Password,
    team: Field = "",
    new_team: Field = "",
    all_teams: Annotated[bool, Form()] = False,
) -> Response:
    """Change which teams a supervisor reads."""

    def change() -> dict[str, str]:
        wanted = _team(services, team, new_team)
        changes = AccountChanges(services.store, person.name)
        changes.change_teams(name, wanted, all_teams=all_teams)
        return {"done": f"{name} now reads {'all teams' if all_teams else f'team {wanted}'}."}

    return await _changed(
        request,
        services,
        person,
        name,
        password,
        change,
        opened="teams",
        typed_team=team,
        typed_new_team=new_team,
    )


@router.post("/{name:segment}/disable")
async def disable(
    request: Request, services: ServicesDep, person: Admin, name: Identifier, password: Password
) -> Response:
    """Disable an account; names are not reused."""

    def change() -> None:
        if name == person.name:
            raise PersonError("you cannot disable your own account")
        AccountChanges(services.store, person.name).disable(name)

    try:
        await confirmed(request, services, person, password, change)
    except PersonError as problem:
        return _one(request, services, person, name, problem=str(problem), opened="disable")
    return _list(request, services, person, done=f"{name} is disabled.")


def _team(services: Services, chosen: str, new: str) -> str | None:
    """The team of a form: one that exists, or a new one that is written out.

    Raises:
        PersonError: the chosen team does not exist, or the new one does under another spelling.
    """
    chosen, new = chosen.strip(), new.strip()
    known = [each.name for each in service_facts.teams(services.store)]
    if new:
        for other in known:
            if other != new and other.casefold() == new.casefold():
                raise PersonError(f"there is a team {other}: choose it from the list")
        return new
    if chosen and chosen not in known:
        raise PersonError(f"there is no team {chosen}: write it under “New team” to begin one")
    return chosen or None


async def _changed(
    request: Request,
    services: Services,
    person: Person,
    name: str,
    password: str,
    change: Callable[[], dict[str, str]],
    **typed: str | bool,
) -> Response:
    """Make a change to an account; a refused form keeps what was ``typed``."""
    try:
        shown = await confirmed(request, services, person, password, change)
    except PersonError as problem:
        return _one(request, services, person, name, problem=str(problem), **typed)
    return _one(request, services, person, name, **shown)


def _list(
    request: Request,
    services: Services,
    person: Person,
    problem: str = "",
    done: str = "",
    typed: dict[str, str | bool] | None = None,
) -> Response:
    return render(
        request,
        "admin_accounts.html",
        person,
        status=422 if problem else 200,
        accounts=services.people.all(),
        roles=[role.value for role in PersonRole],
        teams=[each.name for each in service_facts.teams(services.store)],
        problem=problem,
        done=done,
        typed=typed or {},
    )


def _one(
    request: Request, services: Services, person: Person, name: str, **shown: str | bool | None
) -> Response:
    found = services.people.find(name)
    if found is None:
        raise HTTPException(404)
    return render(
        request,
        "admin_account.html",
        person,
        status=422 if shown.get("problem") else 200,
        account=found,
        identity=services.people.identity(name),
        has_password=services.people.password_hash(name) is not None,
        takes_password=found.role in WITH_PASSWORD,
        tokens=services.people.tokens(name),
        rights=[right.value for right in TOKEN_RIGHTS if right in RIGHTS[found.role]],
        days=DAYS,
        teams=[each.name for each in service_facts.teams(services.store)],
        **shown,
    )
