"""What every page shares: templates, signing in and out."""

from pathlib import Path
from typing import Annotated, Final
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.templating import Jinja2Templates

from stream_app.contracts.scores import SessionStatus
from stream_app.store.reading import sessions
from stream_app.web.auth import PERSON, SignedIn, SignInNeeded, signed_in
from stream_app.web.services import Wired

FOLDER: Final = Path(__file__).parent
STATIC: Final = FOLDER / "static"
templates = Jinja2Templates(FOLDER / "templates")
router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)


@router.get("/sign-in")
def sign_in_page(request: Request, to: str = "/") -> Response:
    """The form."""
    return templates.TemplateResponse(request, "sign_in.html", {"to": to, "refused": False})


@router.post("/sign-in")
def sign_in(
    request: Request,
    services: Wired,
    name: Annotated[str, Form()],
    password: Annotated[str, Form()],
    to: Annotated[str, Form()] = "/",
) -> Response:
    """Sign in and go where one wanted to go."""
    person = signed_in(services, name, password)
    if person is None:
        context = {"to": to, "refused": True}
        return templates.TemplateResponse(request, "sign_in.html", context, status_code=401)
    request.session.clear()
    request.session[PERSON] = person.name
    inside = to.startswith("/") and not to.startswith(("//", "/\\"))
    return RedirectResponse(to if inside else "/", status_code=303)


@router.post("/sign-out")
def sign_out(request: Request) -> Response:
    """Forget who it was."""
    request.session.clear()
    return RedirectResponse("/sign-in", status_code=303)


@router.get("/")
def wall(request: Request, services: Wired, person: SignedIn) -> Response:
    """Live sessions, worst first."""
    chosen = sessions.SessionFilter(status=SessionStatus.OPEN)
    page = sessions.find(services.store, person.scope, chosen, limit=500)
    return templates.TemplateResponse(request, "wall.html", {"person": person, "cards": page.items})


def attach(app: FastAPI) -> None:
    """Send whoever is not signed in to the form, and back afterwards."""

    @app.exception_handler(SignInNeeded)
    async def to_sign_in(request: Request, _: Exception) -> Response:
        if request.url.path.startswith("/api/"):
            return Response(status_code=401, headers={"WWW-Authenticate": "Bearer"})
        wanted = quote(request.url.path)
        return RedirectResponse(f"/sign-in?to={wanted}", status_code=303)
