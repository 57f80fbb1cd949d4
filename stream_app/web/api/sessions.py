"""Sessions, their turns with all scores and evidence, and how they moved."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Query

from stream_app.contracts.scores import SessionStatus
from stream_app.store import audit
from stream_app.store.audit import Audited
from stream_app.store.people import Person, PersonRole
from stream_app.store.reading import history, sessions, transcripts
from stream_app.store.reading.history import TurnPoint
from stream_app.store.reading.pages import Page, cursor_of, place_of
from stream_app.store.reading.sessions import Order, SessionCard, SessionFilter
from stream_app.store.reading.transcripts import TurnRead
from stream_app.web.api.fields import Cursor, Identifier, Limit, Moment, Team
from stream_app.web.auth import Member
from stream_app.web.segments import SESSION
from stream_app.web.services import Services, Wired

TURNS = "turns"
router = APIRouter(prefix="/sessions", tags=["sessions"])
SessionId = Annotated[Identifier, Path(description="The session's id, as its events carry it")]


@router.get("")
def list_sessions(
    services: Wired,
    person: Member,
    status: Annotated[SessionStatus | None, Query(description="Only these")] = None,
    team: Team = None,
    domain: Annotated[
        Identifier | None, Query(description="counselling, peer-support or customer-service")
    ] = None,
    channel: Annotated[Identifier | None, Query(description="Only this channel")] = None,
    counsellor: Annotated[
        Identifier | None, Query(description="Only sessions of this pseudonym; not for analysts")
    ] = None,
    started_from: Annotated[Moment | None, Query(description="Began at this time or later")] = None,
    started_before: Annotated[Moment | None, Query(description="Began before this time")] = None,
    order: Annotated[
        Order,
        Query(description="`risk`: highest first, `activity` and `start`: newest first, `id`"),
    ] = Order.RISK,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[SessionCard]:
    """Sessions within the own scope, highest risk first unless another order is asked for.

    Risks change while one pages through a list: with `order=id` no session comes twice or is
    left out.
    """
    if counsellor is not None and person.role is PersonRole.ANALYST:
        raise HTTPException(403, "analysts read no pseudonyms")
    chosen = SessionFilter(status, team, domain, channel, counsellor, started_from, started_before)
    page = sessions.find(services.store, person.scope, chosen, order, cursor, limit)
    return Page([shown(person, card) for card in page.items], page.next_cursor)


@router.get(f"/{SESSION}/turns")
def turns_of_session(
    services: Wired,
    person: Member,
    session_id: SessionId,
    cursor: Cursor = None,
    limit: Limit = 200,
) -> Page[TurnRead]:
    """Turns in their order with every score: levels, probabilities, rationale, confidence.

    Rationale spans are `[start, end)` in characters of `text`. Roles that may not read transcripts
    get `text: null`, analysts the role as `speaker`; a read with text is audited.
    """
    _card(services, person, session_id)
    after = -1 if cursor is None else place_of(TURNS, cursor, [int])[0]
    if person.reads_transcripts:
        audit.record(services.store, person.name, Audited.READ_TRANSCRIPT, session_id, "api")
    found = transcripts.read(
        services.store, person.scope, session_id, after_seq=after, limit=limit + 1
    )
    if not person.reads_transcripts:
        found = [replace(turn, text=None) for turn in found]
    if person.role is PersonRole.ANALYST:
        found = [replace(turn, speaker=turn.role.value) for turn in found]
    more = len(found) > limit
    return Page(found[:limit], cursor_of(TURNS, [found[limit - 1].seq]) if more else None)


@router.get(f"/{SESSION}/history")
def history_of_session(
    services: Wired,
    person: Member,
    session_id: SessionId,
    bundle: Annotated[Identifier | None, Query(description="Only scores of this bundle")] = None,
    cursor: Cursor = None,
    limit: Limit = 500,
) -> Page[TurnPoint]:
    """Risk and mechanisms after each counsellor turn, under each bundle that scored it."""
    _card(services, person, session_id)
    return history.of_session(services.store, person.scope, session_id, bundle, cursor, limit)


@router.get(f"/{SESSION}")
def one_session(services: Wired, person: Member, session_id: SessionId) -> SessionCard:
    """One session as it stands, with its risk after each counsellor turn."""
    return shown(person, _card(services, person, session_id))


def shown(person: Person, card: SessionCard) -> SessionCard:
    """A session as this person may see it: analysts get no pseudonyms."""
    return replace(card, counsellors=[]) if person.role is PersonRole.ANALYST else card


def _card(services: Services, person: Person, session_id: str) -> SessionCard:
    found = sessions.one(services.store, person.scope, session_id)
    if found is None:
        raise HTTPException(404, "there is no such session")
    return found
