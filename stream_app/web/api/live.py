"""``GET /live``: server-sent events of sessions, turns, alerts and what people do to them."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

import anyio
from fastapi import APIRouter, Header, Query, Request
from sse_starlette import EventSourceResponse, ServerSentEvent

from stream_app.store.people import Person, PersonRole
from stream_app.web.api.fields import Identifier, Team
from stream_app.web.auth import Member, SignInNeeded, person_of
from stream_app.web.live import Hub, Wanted
from stream_app.web.services import Services, Wired

KEEP_ALIVE: Final = 10
"""Seconds between comments that keep proxies from closing a quiet stream."""
LOOK_UP_EVERY: Final = 1.0
"""A quiet stream looks so often (seconds) whether the server stops."""
RECONNECT_MS: Final = 2000
SEND_WITHIN: Final = 60.0
"""A client that takes nothing for so many seconds is gone."""
CHECK_EVERY: Final = 10.0
"""Seconds between two looks whether the account is still good."""

router = APIRouter(tags=["live"])


_EXAMPLE: Final = """\
id: 5f3a9c01-41
retry: 2000

event: session
id: 5f3a9c01-42
data: {"type":"session_score","session_id":"chat-4711","low_empathy_risk":0.61,"team":"north"}

event: resync
id: 5f3a9c01-97
data: {}
"""
_STREAM: Final[dict[int | str, Any]] = {
    200: {
        "description": "An endless stream (`text/event-stream`).",
        "content": {"text/event-stream": {"schema": {"type": "string"}, "example": _EXAMPLE}},
    }
}


@router.get("/live", response_class=EventSourceResponse, responses=_STREAM)
async def live(
    request: Request,
    services: Wired,
    person: Member,
    team: Team = None,
    domain: Annotated[Identifier | None, Query(description="Only this domain")] = None,
    session: Annotated[Identifier | None, Query(description="Only this session")] = None,
    last_event_id: Annotated[
        str | None,
        Header(max_length=100, description="Go on after this event; browsers send it themselves"),
    ] = None,
    after: Annotated[
        str | None,
        Query(max_length=100, description="As Last-Event-ID, for a page's first connection"),
    ] = None,
) -> EventSourceResponse:
    """Live events within the own scope, as they happen; each holds no text of any turn.

    - `session`: the `session_score` message, with team, domain, channel and counsellors
    - `turn`: the `turn_score` message
    - `alert`: a transition of a rule, with team and domain
    - `alert-action`: what somebody did: episode_id, session_id, kind, reason, person, at, state
    - `stale`: the broker is away since `since`; pages go on, nothing new is told
    - `resync`: events were missed; load the state anew. What follows is complete again

    Ids are `<epoch>-<n>`. After `Last-Event-ID`, what was missed is replayed as far as it is kept
    (the newest 5,000 events), else there is a `resync`. A client that reads too slowly gets a
    `resync`, too. Every 10 s there is a comment. A page asks with `after` = `live_position` of
    `/me`, read before its state.
    """
    services.hub.check_room(person.name)
    wanted = Wanted(
        person.scope,
        team,
        domain,
        session,
        deidentified=person.role is PersonRole.ANALYST,
        person=person.name,
    )
    stopping = anyio.Event()
    stream = _stream(request, services, person, wanted, last_event_id or after, stopping)
    return EventSourceResponse(
        stream,
        ping=KEEP_ALIVE,
        send_timeout=SEND_WITHIN,
        shutdown_event=stopping,
        shutdown_grace_period=3 * LOOK_UP_EVERY,
    )


async def _stream(
    request: Request,
    services: Services,
    person: Person,
    wanted: Wanted,
    last_id: str | None,
    stopping: anyio.Event,
) -> AsyncIterator[ServerSentEvent]:
    hub = services.hub
    began = checked = time.monotonic()
    longest = services.settings.web_sign_in_hours * 3600
    with hub.listening(wanted, last_id) as (client, missed):
        # an id without data: a browser that loses the stream at once can still say where it was
        yield ServerSentEvent(id=_id(hub, last_id), retry=RECONNECT_MS)
        for event in missed:
            yield ServerSentEvent(wanted.shown(event), event=event.kind.value, id=hub.id_of(event))
        while not stopping.is_set() and time.monotonic() - began < longest:
            for event in await client.take(LOOK_UP_EVERY):
                yield ServerSentEvent(
                    wanted.shown(event), event=event.kind.value, id=hub.id_of(event)
                )
            if time.monotonic() - checked > CHECK_EVERY:
                checked = time.monotonic()
                if not await asyncio.to_thread(_still_good, request, services, person):
                    return


def _id(hub: Hub, last_id: str | None) -> str:
    return last_id if last_id is not None else hub.position


def _still_good(request: Request, services: Services, person: Person) -> bool:
    try:
        return person_of(request, services) == person
    except SignInNeeded:
        return False
