"""Renders the Jinja templates, with filters for times, names and numbers."""

from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import Response
from fastapi.templating import Jinja2Templates
from markupsafe import Markup

from stream_app.contracts.scores import MECHANISMS
from stream_app.core.measures.heads import LEVELS, badge_of
from stream_app.core.rules import variable_words
from stream_app.errors import StoreError
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.work import waiting_work
from stream_app.store.work.waiting_work import WaitingWork
from stream_app.web.console import alert_evidence, formatting, pseudonym_words
from stream_app.web.http.path_segments import path_segment
from stream_app.web.live.live_hub import LiveEventKind
from stream_app.web.services import Services

FOLDER: Final = Path(__file__).parent
STATIC: Final = FOLDER / "static"
APPEARANCE: Final = "rapport-appearance"
APPEARANCES: Final = ("auto", "light", "dark")


def _page_context(request: Request) -> dict[str, Any]:
    chosen = request.cookies.get(APPEARANCE, "auto")
    services: Services = request.app.state.services
    return {
        "appearance": chosen if chosen in APPEARANCES else "auto",
        "appearances": APPEARANCES,
        "path": request.url.path,
        "here": address_of(request) if request.method == "GET" else "/",
        "now": datetime.now(UTC),
        "policy": services.settings.profile,
    }


def address_of(request: Request) -> str:
    """Path and query as sent: in the decoded path, ids with slashes would be ambiguous."""
    path = request.scope["raw_path"].decode("latin-1")
    return f"{path}?{request.url.query}" if request.url.query else path


templates = Jinja2Templates(
    [FOLDER / "templates", *sorted(FOLDER.glob("*/templates"))], context_processors=[_page_context]
)
"""Shared templates, and those beside the pages of each room; their names are unique."""


def render(
    request: Request,
    template: str,
    person: Person | None = None,
    status: int = 200,
    **context: Any,
) -> Response:
    """Render a page for ``person``, whose role determines the navigation."""
    shared = {"person": person, "waiting_work": cache(partial(_waiting, request, person))}
    return templates.TemplateResponse(request, template, {**shared, **context}, status_code=status)


def _waiting(request: Request, person: Person | None) -> WaitingWork:
    """Numbers for the navigation of supervisors; zeros if the database cannot tell."""
    if person is None or person.role is not PersonRole.SUPERVISOR or not person.reads_transcripts:
        return WaitingWork()
    services: Services = request.app.state.services
    try:
        return waiting_work.read(services.store, person.scope, person.name)
    except StoreError:
        return WaitingWork()


def live_address(*kinds: LiveEventKind, **conditions: str) -> str:
    """The address of the live stream with these query parameters; empty values are left out.

    ``kinds``: those that the page's script handles; other events need not be sent to it.
    """
    named = {name: value for name, value in conditions.items() if value}
    chosen = urlencode([*named.items(), *(("kind", kind.value) for kind in kinds)])
    return f"/api/v1/live?{chosen}" if chosen else "/api/v1/live"


def clock(moment: datetime | None) -> Markup | str:
    """A time of day in UTC; ``times.js`` converts it to the reader's time zone."""
    return _time(moment, "clock", "%H:%M:%S")


def day(moment: datetime | None) -> Markup | str:
    """Date and time in UTC, with the year if it is not this one.

    ``times.js`` converts it to the reader's time zone.
    """
    this_year = moment is None or moment.astimezone(UTC).year == datetime.now(UTC).year
    return _time(moment, "day", "%-d %b, %H:%M" if this_year else "%-d %b %Y, %H:%M")


def weekday(moment: datetime, now: datetime) -> Markup:
    """The day of a past time, without its date if it was in the last six days.

    In UTC; ``times.js`` converts it to the reader's time zone.
    """
    form = "%A" if now - moment < timedelta(days=6) else "%A %-d %b"
    return _element(moment, "weekday", moment.astimezone(UTC).strftime(form))


def since(moment: datetime | None, now: datetime) -> Markup | str:
    """Time elapsed since ``moment``; ``times.js`` keeps it up to date."""
    if moment is None:
        return "–"
    return _element(moment, "since", formatting.duration((now - moment).total_seconds()))


def _time(moment: datetime | None, kind: str, form: str) -> Markup | str:
    if moment is None:
        return "–"
    return _element(moment, kind, f"{moment.astimezone(UTC).strftime(form)} UTC")


def _element(moment: datetime, kind: str, shown: str) -> Markup:
    """Not by ``Markup``'s ``%``, which takes several times as long: a page has 500 of these."""
    in_utc = moment.astimezone(UTC).isoformat(" ", "seconds")[:19]
    return Markup(  # noqa: S704  # times have nothing to escape
        f'<time datetime="{moment.isoformat()}" title="{in_utc} UTC" data-{kind}>{shown}</time>'
    )


templates.env.filters.update(
    expected_answer=alert_evidence.expected,
    variable=variable_words.in_words,
    scale=variable_words.scale,
    elapsed=variable_words.is_elapsed,
    present=variable_words.present,
    variable_value=lambda value, name: variable_words.told(name, value),
    clock=clock,
    day=day,
    since=since,
    weekday=weekday,
    plain=formatting.plain,
    pseudonym=pseudonym_words.short_form,
    path_segment=path_segment,
    number=formatting.number,
    validity=formatting.validity,
    expected=formatting.count,
    counted=formatting.counted,
    measured=formatting.measured,
    measure_value=formatting.measure_value,
    sentence=formatting.sentence,
)
templates.env.globals.update(
    help_topics={name: badge_of(name).lower() for name in MECHANISMS},
    mechanisms=MECHANISMS,
    badges=formatting.BADGES,
    level_words=LEVELS,
)
templates.env.auto_reload = False  # it looks at the files at every `include`: 1,500 times a wall
templates.env.trim_blocks = True
templates.env.lstrip_blocks = True
