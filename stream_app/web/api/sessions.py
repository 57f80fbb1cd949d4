"""Sessions, their turns with scores and evidence, and their history."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Query

from stream_app.contracts.scores import SessionStatus
from stream_app.contracts.utf16 import utf16_spans
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole, Right
from stream_app.store.database.pages import Page, decode_cursor, encode_cursor
from stream_app.store.sessions import history, sessions, transcripts
from stream_app.store.sessions.history import TurnPoint
from stream_app.store.sessions.sessions import Order, SessionCard, SessionFilter
from stream_app.store.sessions.transcripts import TurnRead
from stream_app.web.http.fields import Cursor, Identifier, Limit, Moment, Team
from stream_app.web.http.path_segments import SESSION_ID
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Member, needs
from stream_app.work.visible import session_for

TURNS = "turns"
router = APIRouter(prefix="/sessions", tags=["sessions"])
SessionId = Annotated[Identifier, Path(description="The session's id, as in its events")]


@router.get("")
@needs(Right.READ_SCORES)
def list_sessions(
    services: ServicesDep,
    person: Member,
    status: Annotated[
        SessionStatus | None, Query(description="Only sessions with this status")
    ] = None,
    team: Team = None,
    domain: Annotated[
        Identifier | None, Query(description="counselling, peer-support or customer-service")
    ] = None,
    channel: Annotated[Identifier | None, Query(description="Only this channel")] = None,
    counsellor: Annotated[
        Identifier | None,
        Query(description="Only sessions of this counsellor (pseudonym); not for analysts"),
    ] = None,
    started_from: Annotated[
        Moment | None, Query(description="Started at this time or later")
    ] = None,
    started_before: Annotated[Moment | None, Query(description="Started before this time")] = None,
    order: Annotated[
        Order,
        Query(
            description="`risk`: highest first, `index`: lowest first, `activity` and `start`: "
            "newest first, `id`"
        ),
    ] = Order.RISK,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[SessionCard]:
    """Sessions within your access scope, by default highest risk first.

    Risks change while you page through the list; with `order=id` no session is repeated or
    skipped.
    """
    if counsellor is not None and person.role is PersonRole.ANALYST:
        raise HTTPException(403, "analysts may not use pseudonyms")
    services.accesses.record(person.name, AuditAction.READ_SCORES, "list of sessions")
    chosen = SessionFilter(status, team, domain, channel, counsellor, started_from, started_before)
    page = sessions.find(services.store, person.scope, chosen, order, cursor, limit)
    return Page([session_for(person, card) for card in page.items], page.next_cursor)


@router.get(f"/{SESSION_ID}/turns")
@needs(Right.READ_SCORES)
def turns_of_session(
    services: ServicesDep,
    person: Member,
    session_id: SessionId,
    cursor: Cursor = None,
    limit: Limit = 200,
) -> Page[TurnRead]:
    """Turns in order, with every score: levels, probabilities, rationale, confidence.

    Rationale spans are `[start, end)` in Unicode code points of `text`, `rationale_utf16` has them
    in UTF-16 code units, for JavaScript; it is absent once the text expired. Roles that may not
    read transcripts get `text: null`; analysts get the role as `speaker`. Every read with text is
    audited.
    """
    _card(services, person, session_id)
    after = -1 if cursor is None else decode_cursor(TURNS, cursor, [int])[0]
    if person.reads_transcripts:
        audit.record(services.store, person.name, AuditAction.READ_TRANSCRIPT, session_id, "api")
    else:
        services.accesses.record(person.name, AuditAction.READ_SCORES, "turns", session_id)
    found = transcripts.read(
        services.store, person.scope, session_id, after_seq=after, limit=limit + 1
    )
    found = [_with_utf16(turn) for turn in found]
    if not person.reads_transcripts:
        found = [replace(turn, text=None) for turn in found]
    if person.role is PersonRole.ANALYST:
        found = [replace(turn, speaker=turn.role.value) for turn in found]
    more = len(found) > limit
    return Page(found[:limit], encode_cursor(TURNS, [found[limit - 1].seq]) if more else None)


def _with_utf16(turn: TurnRead) -> TurnRead:
    if turn.text is None:
        return turn
    return replace(
        turn,
        scores=[
            replace(
                score,
                expressed={
                    name: _level_with_utf16(turn.text, value)
                    for name, value in score.expressed.items()
                },
            )
            for score in turn.scores
        ],
    )


def _level_with_utf16(text: str, value: Any) -> Any:
    """A level with its spans in UTF-16, too; any other head as it is."""
    if not isinstance(value, dict) or "rationale" not in value:
        return value
    return value | {"rationale_utf16": utf16_spans(text, value["rationale"])}


@router.get(f"/{SESSION_ID}/history")
@needs(Right.READ_SCORES)
def history_of_session(
    services: ServicesDep,
    person: Member,
    session_id: SessionId,
    bundle: Annotated[Identifier | None, Query(description="Only scores of this bundle")] = None,
    cursor: Cursor = None,
    limit: Limit = 500,
) -> Page[TurnPoint]:
    """Risk and mechanisms after each counsellor turn, for each bundle that scored it."""
    _card(services, person, session_id)
    services.accesses.record(person.name, AuditAction.READ_SCORES, "history", session_id)
    return history.of_session(services.store, person.scope, session_id, bundle, cursor, limit)


@router.get(f"/{SESSION_ID}")
@needs(Right.READ_SCORES)
def one_session(services: ServicesDep, person: Member, session_id: SessionId) -> SessionCard:
    """One session with its current aggregates and its risk after each counsellor turn.

    Roles and tokens that may not read transcripts get `end_reason: null`.
    """
    card = _card(services, person, session_id)
    services.accesses.record(person.name, AuditAction.READ_SCORES, "session", session_id)
    return session_for(person, card)


def _card(services: Services, person: Person, session_id: str) -> SessionCard:
    found = sessions.one(services.store, person.scope, session_id)
    if found is None:
        raise HTTPException(404, "no such session")
    return found
