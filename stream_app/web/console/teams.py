"""The page with teams by domain, for analysts and supervisors; small cells are suppressed."""

from datetime import UTC, datetime, timedelta
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from stream_app.core.suppression import MIN_CLIENTS, MIN_COUNSELLORS
from stream_app.store.queries import bundle_info, cohorts
from stream_app.web.api.fields import Identifier
from stream_app.web.api.samples import ReportReader
from stream_app.web.cohorts import build_table
from stream_app.web.console.rendering import render
from stream_app.web.services import ServicesDep

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
WEEKS: Final = 8


@router.get("/teams")
def teams(
    request: Request, services: ServicesDep, person: ReportReader, bundle: Identifier | None = None
) -> Response:
    """Show one model at a time, because means of different models are not comparable."""
    known = sorted(bundle_info.read(services.store), reverse=True)
    chosen = bundle if bundle in known else next(iter(known), None)
    since = datetime.now(UTC) - timedelta(weeks=WEEKS)
    found = cohorts.read(services.store, person.scope, chosen, since) if chosen else []
    return render(
        request,
        "teams.html",
        person,
        table=build_table(found),
        bundle=chosen,
        bundles=known,
        weeks=WEEKS,
        fewest_clients=MIN_CLIENTS,
        fewest_counsellors=MIN_COUNSELLORS,
    )
