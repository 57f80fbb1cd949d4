"""The page with buttons for the API's exports."""

from datetime import UTC, date, datetime
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from msgspec import Struct

from stream_app.contracts.events import MAX_ID_CHARS, Domain
from stream_app.findings.exports.formats import Format
from stream_app.findings.exports.rollups import RollUp
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.web.console.rendering import render
from stream_app.web.sign_in.auth import Exporter

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
FilterValue = Annotated[str, Query(max_length=MAX_ID_CHARS, pattern=r"^[^\x00]*$")]
Day = Annotated[str, Query(pattern=r"^(\d{4}-\d{2}-\d{2})?$")]
ROLLUPS: Final = "rollups"
CONVOKIT: Final = "convokit"


class Table(Struct, frozen=True):
    """A table that can be exported, with one row per what."""

    name: str
    title: str
    about: str


TABLES: Final = (
    Table("sessions", "Sessions", "One row per session, with its scores."),
    Table("turns", "Turns", "One row per turn, with its scores and without text."),
    Table("ratings", "Ratings", "One row per rating of a turn or session by a person."),
    Table("disputes", "Disputes", "One row per disputed score, with the answer."),
    Table("alerts", "Alerts", "One row per alert, with people's answers."),
    Table(CONVOKIT, "ConvoKit corpus", "Sessions and turns as a folder (zip), without text."),
)
OF_MANY: Final = Table(
    ROLLUPS,
    "Roll-ups",
    "Numbers and means by period; small cells are hidden. Finished reporting months only.",
)


@router.get("/exports")
def exports(request: Request, person: Exporter) -> Response:
    """Show what this person may export."""
    return render(
        request,
        "exports.html",
        person,
        tables=_tables(person),
        formats=[each.value for each in Format],
        domains=[each.value for each in Domain],
        rollups=_rollups(person),
    )


@router.get("/exports/file")
def export(
    person: Exporter,
    table: FilterValue,
    format: Format = Format.CSV,  # noqa: A002  # the form's field
    rollup: RollUp = RollUp.WEEK_MEASURE,
    team: FilterValue = "",
    domain: FilterValue = "",
    since: Day = "",
    until: Day = "",
) -> Response:
    """Redirect to the API's export; days become moments in UTC."""
    if table not in {each.name for each in _tables(person)}:
        raise HTTPException(404, "there is no such export")
    query = {"text": "false"} if table == CONVOKIT else {"format": format.value}
    if table == ROLLUPS:
        query["table"] = rollup.value
    else:
        query |= {"team": team, "domain": domain}
        query |= {"started_from": _moment(since), "started_before": _moment(until)}
    chosen = urlencode({name: value for name, value in query.items() if value})
    return RedirectResponse(f"/api/v1/exports/{table}?{chosen}", 303)


def _tables(person: Person) -> list[Table]:
    many = person.role in (PersonRole.SUPERVISOR, PersonRole.ANALYST)
    return [*TABLES, *([OF_MANY] if many else [])]


def _rollups(person: Person) -> list[RollUp]:
    """A supervisor of a team reads only roll-ups by team."""
    of_all = (RollUp.DAY_MEASURE, RollUp.DAY)
    return [each for each in RollUp if person.scope.team is None or each not in of_all]


def _moment(day: str) -> str:
    if not day:
        return ""
    try:
        midnight = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC)
    except ValueError:
        raise HTTPException(422, "this is not a day") from None
    return midnight.isoformat()
