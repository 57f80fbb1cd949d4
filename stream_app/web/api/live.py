"""``GET /live``: server-sent events about sessions, turns, alerts and people's actions."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

import anyio
from fastapi import APIRouter, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from sse_starlette import EventSourceResponse, ServerSentEvent

from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole, Right
from stream_app.web.http.fields import Identifier, Team
from stream_app.web.live.live_hub import Hub, LiveEventKind, Subscription
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import SIGN_IN_LASTS, Member, NotSignedIn, current_person, needs

KEEP_ALIVE: Final = 10
"""Seconds between comments that keep proxies from closing an idle stream."""
SHUTDOWN_CHECK_SECONDS: Final = 1.0
"""Seconds between an idle stream's checks for server shutdown."""
RECONNECT_MS: Final = 2000
SEND_TIMEOUT: Final = 60.0
"""Seconds after which a client that reads nothing is disconnected."""
ACCOUNT_CHECK_SECONDS: Final = 10.0
"""Seconds between checks that the account is still valid."""

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
@needs(Right.READ_SCORES)
async def live(
    request: Request,
    services: ServicesDep,
    person: Member,
    team: Team = None,
    domain: Annotated[Identifier | None, Query(description="Only this domain")] = None,
    session: Annotated[Identifier | None, Query(description="Only this session")] = None,
    kind: Annotated[
        list[LiveEventKind] | None,
        Query(description="Only events of these kinds, and always `stale` and `resync`"),
    ] = None,
    last_event_id: Annotated[
        str | None,
        Header(max_length=100, description="Continue after this event; browsers send it"),
    ] = None,
    after: Annotated[
        str | None,
        Query(max_length=100, description="Like Last-Event-ID, for a page's first connection"),
    ] = None,
) -> EventSourceResponse:
    """Live events within your access scope. They contain no transcript text.

    - `session`: the `session_score` message, with team, domain, channel and counsellors
    - `turn`: the `turn_score` message
    - `alert`: a transition of an alert, with team and domain
    - `alert-action`: a person's action: episode_id, session_id, kind, reason, person, at, state
    - `intervention`: a supervisor's intervention, or a desk's receipt (`type`), without
      its text; an intervention again when it was published
    - `stale`: the broker has been unavailable since `since`; no new events until a `resync`
    - `resync`: events were lost; reload the state. Events after it are complete

    Events after `Last-Event-ID` are replayed if they are among the newest 10,000; otherwise a
    `resync` is sent. An id is valid in every web process; one that did not send it repeats the
    events of the second before. A client that reads too slowly also gets a `resync`. A comment is
    sent every 10 s. To miss nothing, read `live_position` of `/me`, then load the state, then
    connect with `after` = `live_position`.
    """
    services.hub.check_room(person.name)
    await run_in_threadpool(
        services.accesses.record, person.name, AuditAction.READ_SCORES, "live stream"
    )
    subscription = Subscription(
        person.scope,
        team,
        domain,
        session,
        deidentified=person.role is PersonRole.ANALYST,
        person=person.name,
        kinds=frozenset(kind) if kind else None,
    )
    stopping = anyio.Event()
    stream = _stream(request, services, person, subscription, last_event_id or after, stopping)
    return EventSourceResponse(
        stream,
        ping=KEEP_ALIVE,
        send_timeout=SEND_TIMEOUT,
        shutdown_event=stopping,
        shutdown_grace_period=3 * SHUTDOWN_CHECK_SECONDS,
    )


async def _stream(
    request: Request,
    services: Services,
    person: Person,
    subscription: Subscription,
    last_id: str | None,
    stopping: anyio.Event,
) -> AsyncIterator[ServerSentEvent | bytes]:
    hub = services.hub
    began = checked = time.monotonic()
    max_seconds = SIGN_IN_LASTS.total_seconds()
    with hub.subscribe(subscription, last_id) as (client, missed):
        # an id without data: a browser that loses the stream at once can still resume from here
        yield ServerSentEvent(id=_id(hub, last_id), retry=RECONNECT_MS)
        if missed:
            yield hub.encode(missed, subscription)
        while not stopping.is_set() and time.monotonic() - began < max_seconds:
            events = await client.take(SHUTDOWN_CHECK_SECONDS)
            if encoded := hub.encode(events, subscription):
                yield encoded
            if time.monotonic() - checked > ACCOUNT_CHECK_SECONDS:
                checked = time.monotonic()
                if not await asyncio.to_thread(_is_still_valid, request, services, person):
                    return


def _id(hub: Hub, last_id: str | None) -> str:
    return last_id if last_id is not None else hub.position


def _is_still_valid(request: Request, services: Services, person: Person) -> bool:
    try:
        return current_person(request, services) == person
    except NotSignedIn:
        return False
