"""The page of the policy profile in force: what it switches, and its notices."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from stream_app.policies import in_words
from stream_app.web.console.rendering import render
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import Member

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)


@router.get("/policy")
def policy(request: Request, services: ServicesDep, person: Member) -> Response:
    """Show the profile, or say that there is none."""
    profile = services.settings.profile
    values = dict(services.settings)
    bounded = [
        (f"RAPPORT_{name.upper()}", "–" if values[name] is None else in_words(values[name]), bound)
        for name, bound in (profile.settings_in_words() if profile else ())
    ]
    return render(
        request,
        "policy.html",
        person,
        profile=profile,
        told=profile and profile.told(values),
        workers_told=services.settings.workers_told,
        bounded=bounded,
    )
