"""Settings in force, retention and teams, as this web process sees them."""

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from stream_app.errors import ClocksDisagree
from stream_app.shown_settings import shown_settings
from stream_app.store.database import clocks
from stream_app.store.lifecycle import service_facts
from stream_app.store.lifecycle.retention import PurgeRefused, schedule
from stream_app.web.console.rendering import render
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Admin

router = APIRouter(prefix="/admin", default_response_class=HTMLResponse, include_in_schema=False)


@router.get("/settings")
def settings_in_force(request: Request, services: ServicesDep, person: Admin) -> Response:
    """List all settings of this process; secrets are masked."""
    found = list(shown_settings(services.settings))
    return render(request, "admin_settings.html", person, settings=found)


@router.get("/retention")
def retention(request: Request, services: ServicesDep, person: Admin) -> Response:
    """Show what is kept for how long, and what the next purge would delete."""
    return render(
        request,
        "admin_retention.html",
        person,
        settings=services.settings,
        kept=service_facts.kept(services.store),
        today=datetime.now(UTC),
        **_next_purge(services),
    )


def _next_purge(services: Services) -> dict[str, Any]:
    """What has expired by the database's clock, and why workers would not purge it."""
    store, settings = services.store, services.settings
    planned = schedule(store, settings.keep_text, settings.keep_scores)
    try:
        clocks.check(planned.now, datetime.now(UTC))
    except ClocksDisagree as problem:
        return {"expiring": None, "clocks": str(problem)}
    try:
        planned.check(store)
    except PurgeRefused as problem:
        return {"expiring": planned.expiring(store), "refused": str(problem)}
    return {"expiring": planned.expiring(store)}


@router.get("/teams")
def teams(request: Request, services: ServicesDep, person: Admin) -> Response:
    """List teams with their numbers of sessions and their accounts."""
    found = service_facts.teams(services.store)
    everywhere = [each.name for each in services.people.all() if each.all_teams]
    return render(request, "admin_teams.html", person, teams=found, everywhere=everywhere)
