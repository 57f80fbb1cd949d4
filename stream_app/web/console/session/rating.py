"""The forms of a session's page that rate a turn or the session, and dispute a score."""

from typing import Annotated

from fastapi import APIRouter, Form, HTTPException, Request
from fastapi.responses import RedirectResponse, Response

from stream_app.contracts.scores import MECHANISMS
from stream_app.store.work import disputes, ratings
from stream_app.store.work.ratings import MAX_RATING, MIN_RATING, SESSION_RATING, Judgement
from stream_app.web.console.session.feedback import turn_address
from stream_app.web.http.fields import MAX_SEQ, FormComment, FormNote, Identifier
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.http.path_segments import SESSION_ID, path_segment
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Counsellor, Reader

router = APIRouter(include_in_schema=False)
Seq = Annotated[int, Form(ge=0, le=MAX_SEQ)]
Level = Annotated[int | None, Form(ge=0, le=2)]


@router.post(f"/sessions/{SESSION_ID}/turn-rating")
def rate_turn(
    request: Request,
    services: ServicesDep,
    person: Reader,
    session_id: Identifier,
    seq: Seq,
    emotional_reactions: Level = None,
    interpretations: Level = None,
    explorations: Level = None,
    comment: FormComment = "",
) -> Response:
    """Rate the mechanisms of a turn, all or some of them, with a comment."""
    levels = (emotional_reactions, interpretations, explorations)
    given = [
        Judgement(session_id, seq, head, level)
        for head, level in zip(MECHANISMS, levels, strict=True)
        if level is not None
    ]
    if not given:
        raise HTTPException(422, "choose a level")
    _rate(services, person, given, comment)
    return _done(request, turn_address(session_id, seq))


@router.post(f"/sessions/{SESSION_ID}/session-rating")
def rate_session(
    request: Request,
    services: ServicesDep,
    person: Reader,
    session_id: Identifier,
    rating: Annotated[int, Form(ge=MIN_RATING, le=MAX_RATING)],
    comment: FormComment = "",
) -> Response:
    """Rate the whole session, with a comment."""
    _rate(services, person, [Judgement(session_id, None, SESSION_RATING, rating)], comment)
    return _done(request, f"/sessions/{path_segment(session_id)}#session-rating")


@router.post(f"/sessions/{SESSION_ID}/dispute")
def dispute(
    request: Request,
    services: ServicesDep,
    person: Counsellor,
    session_id: Identifier,
    seq: Seq,
    head: Annotated[Identifier, Form()],
    note: FormNote,
    proposed: Annotated[str, Form(pattern=r"^\d{0,3}$")] = "",
) -> Response:
    """Dispute a score of one's own turn."""
    with as_http_errors():
        disputes.contest(
            services.store,
            person,
            session_id,
            seq,
            head,
            int(proposed) if proposed else None,
            note,
        )
    return _done(request, turn_address(session_id, seq))


def _rate(services: Services, person: Reader, given: list[Judgement], comment: str) -> None:
    with as_http_errors():
        ratings.rate(services.store, person.scope, person.name, given, comment=comment)


def _done(request: Request, page: str) -> Response:
    """Lead a form back to its page; a script gets an empty answer."""
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse(page, status_code=303)
    return Response(status_code=204)
