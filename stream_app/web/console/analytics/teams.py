"""The page with teams by domain in a reporting month; small cells are hidden in the views."""

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from stream_app.analytics.questions import shown_curves
from stream_app.analytics.questions.shown_curves import MonthCell
from stream_app.analytics.questions.suppression import MIN_CLIENTS, MIN_COUNSELLORS
from stream_app.analytics.views.shown import ALL
from stream_app.contracts.scores import MECHANISMS
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.sessions import bundle_info
from stream_app.web.console.analytics.asked_questions import ASKED
from stream_app.web.console.rendering import render
from stream_app.web.http.fields import Identifier
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import ReportReader

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)


@router.get("/teams")
def teams(
    request: Request,
    services: ServicesDep,
    person: ReportReader,
    month: Annotated[str, Query(max_length=10)] = "",
    bundle: Identifier | None = None,
) -> Response:
    """Show one month and model at a time: means of different models are not comparable."""
    services.accesses.record(person.name, AuditAction.READ_STATISTICS, "teams")
    store, team = services.read_store, person.chosen_team(None)
    known = shown_curves.months(store)
    chosen_month = next((each for each in known if str(each) == month), next(iter(known), None))
    bundles = known.get(chosen_month, []) if chosen_month else []
    chosen = bundle if bundle in bundles else next(iter(bundles), None)
    cells = _cells(services, team, chosen_month, chosen)
    return render(
        request,
        "teams.html",
        person,
        teams=_totals_last({team for team, _ in cells}),
        domains=_totals_last({domain for _, domain in cells}),
        cells=cells,
        month=chosen_month,
        months=list(known),
        bundle=chosen,
        bundles=sorted({name for some in known.values() for name in some}, reverse=True),
        questions=ASKED,
        synthetic=bundle_info.synthetic(store),
        fewest_clients=MIN_CLIENTS,
        fewest_counsellors=MIN_COUNSELLORS,
    )


def _cells(
    services: Services, team: str | None, month: date | None, bundle: str | None
) -> dict[tuple[str, str], MonthCell]:
    """Cells by team and domain; ``team``: only this one."""
    if month is None or bundle is None:
        return {}
    found = shown_curves.month_cells(services.read_store, month, bundle, MECHANISMS)
    return {key: cell for key, cell in found.items() if team in (None, cell.team)}


def _totals_last(names: set[str]) -> list[str]:
    return sorted(names, key=lambda name: (name == ALL, name))
