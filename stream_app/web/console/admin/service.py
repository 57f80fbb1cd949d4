"""Settings in force, retention and teams, as this web process sees them."""

from datetime import UTC, datetime

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from stream_app.shown_settings import shown_settings
from stream_app.store.queries import service_facts
from stream_app.web.auth import Admin
from stream_app.web.console.rendering import render
from stream_app.web.services import ServicesDep

router = APIRouter(prefix="/admin", default_response_class=HTMLResponse, include_in_schema=False)


@router.get("/settings")
def settings_in_force(request: Request, services: ServicesDep, person: Admin) -> Response:
    """List all settings of this process; secrets are masked."""
    found = list(shown_settings(services.settings))
    return render(request, "admin_settings.html", person, settings=found)


@router.get("/retention")
def retention(request: Request, services: ServicesDep, person: Admin) -> Response:
    """Show what is kept for how long."""
    return render(
        request,
        "admin_retention.html",
        person,
        settings=services.settings,
        kept=service_facts.kept(services.store),
        today=datetime.now(UTC),
    )


@router.get("/teams")
def teams(request: Request, services: ServicesDep, person: Admin) -> Response:
    """List teams with their numbers of sessions and their accounts."""
    found = service_facts.teams(services.store)
    everywhere = [each.name for each in services.people.all() if each.all_teams]
    return render(request, "admin_teams.html", person, teams=found, everywhere=everywhere)
