"""The list of counsellors with sessions in a supervisor's scope: by name, without any value.

It leads to the pages of single counsellors and deliberately compares no one.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from stream_app.store.accounts.audit import AuditAction
from stream_app.store.sessions import counsellors, filter_choices
from stream_app.web.console.counsellor_names import MOST, find_counsellors, names_for
from stream_app.web.console.overviews.wall import FilterValue
from stream_app.web.console.pseudonym_words import short_form
from stream_app.web.console.rendering import render
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import Supervisor

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
PATH: Final = "/counsellors"


@dataclass(frozen=True, slots=True)
class Listed:
    """One line; ``name`` is that of the account, or the short form of the pseudonym."""

    speaker: str
    name: str
    last_activity_at: datetime | None


@router.get(PATH)
def counsellor_list(
    request: Request,
    services: ServicesDep,
    person: Supervisor,
    team: FilterValue = "",
    search: FilterValue = "",
) -> Response:
    """List counsellors by name; ``search``: a part of the name, or a short form."""
    services.accesses.record(person.name, AuditAction.READ_SCORES, "list of counsellors")
    store, scope = services.store, person.scope
    names = names_for(services, person)
    page = counsellors.find(store, scope, limit=MOST, team=team or None)
    listed = [
        Listed(one.speaker, names.get(one.speaker) or short_form(one.speaker), one.last_activity_at)
        for one in page.items
    ]
    wanted = search.strip().casefold()
    if wanted:
        meant = set(find_counsellors(services, person, search))
        listed = [one for one in listed if wanted in one.name.casefold() or one.speaker in meant]
    return render(
        request,
        "counsellors.html",
        person,
        listed=sorted(listed, key=lambda one: (one.name.casefold(), one.speaker)),
        more=page.next_cursor is not None,
        most=MOST,
        team=team,
        search=search,
        teams=filter_choices.teams(store, scope) if scope.team is None else [],
    )
