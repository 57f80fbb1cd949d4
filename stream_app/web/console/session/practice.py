"""Practice: a counsellor rewrites a turn of an own past session and sees whether it fits better.

Nothing of it is stored or logged. The audit trail has the read of the turn, as for every page that
shows text, and does not say what it was for.
"""

import unicodedata
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Form, HTTPException, Request
from fastapi.responses import HTMLResponse, Response

from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS, Level, SessionStatus, Span
from stream_app.core.measures.heads import badge_of, title_of
from stream_app.core.pipeline.practice import SaidTurn, WordingScore
from stream_app.findings.feedback.judgements import INTERPRETATIONS, Fit, fit
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.sessions import bundle_info, sessions, transcripts
from stream_app.store.sessions.bundle_info import BundleInfo
from stream_app.store.sessions.sessions import SessionCard
from stream_app.store.sessions.transcripts import TurnRead
from stream_app.web.console.rendering import render
from stream_app.web.console.session.evidence import TextSegment, segments
from stream_app.web.http.fields import Identifier, Seq
from stream_app.web.http.path_segments import SESSION_ID
from stream_app.web.practice_model import PracticeScores, PracticeUnavailable, TooManyTries
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Counsellor

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
ADDRESS: Final = f"/sessions/{SESSION_ID}/turns/{{seq}}/practice"
MAX_TEXT: Final = 4000
"""Characters of a wording; the model reads fewer."""
AROUND: Final = 32
"""Turns that are read before and after the turn: more than a window has, as seqs may have gaps."""
SMALL_CHANGE: Final = 0.05
CLEAR_CHANGE: Final = 0.1
_FITS: Final = {
    Fit.FITS: "The model takes the rewritten turn for an answer that fits this conversation.",
    Fit.UNSURE: "The model cannot tell whether the rewritten turn fits this conversation.",
    Fit.MISSES: "The model doubts that the rewritten turn answers what was said before it.",
}
OFF: Final = "Practice is switched off: an administrator can set RAPPORT_PRACTICE=true."
OTHER_LANGUAGE: Final = "The practice model does not cover the language of this turn."


@dataclass(frozen=True, slots=True)
class Wording:
    """A wording with the words that carry each mechanism."""

    text: str
    segments: list[TextSegment]
    truncated: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """The model's reading of a mechanism: expected level (0-2) and probability by label.

    Levels 1 and 2 of an interpretation are not told apart: the model hardly detects weak ones.
    """

    expected: float
    probabilities: list[tuple[str, float]]
    abstained: bool


@dataclass(frozen=True, slots=True)
class Move:
    """A mechanism in both wordings."""

    title: str
    badge: str
    before: Reading
    after: Reading

    @property
    def direction(self) -> str:
        """Which way the expected level moved."""
        change = self.after.expected - self.before.expected
        if abs(change) < SMALL_CHANGE:
            return "about the same"
        return f"{abs(change):.2f} {'higher' if change > 0 else 'lower'}"


@dataclass(frozen=True, slots=True)
class AnswerMove:
    """How probably each wording is a good answer to what was said before it."""

    before: float
    after: float
    before_fit: Fit
    after_fit: Fit

    @property
    def sentence(self) -> str:
        """Whether the rewritten turn fits this conversation, compared with the turn as said."""
        change = self.after - self.before
        if abs(change) < CLEAR_CHANGE:
            return f"{_FITS[self.after_fit]} It fits about as well as the turn as said."
        which = "better" if change > 0 else "less well"
        return f"{_FITS[self.after_fit]} By its reading it fits {which} than the turn as said."


@dataclass(frozen=True, slots=True)
class PracticeTurn:
    """An own turn with the turns around it."""

    card: SessionCard
    info: BundleInfo
    turn: TurnRead
    around: list[TurnRead]

    @property
    def preceding(self) -> list[TurnRead]:
        """The turns before it that its score uses."""
        earlier = [turn for turn in self.around if turn.seq < self.turn.seq and not turn.late]
        return earlier[-self.info.before :] if self.info.before else []

    @property
    def answers(self) -> bool:
        """Whether a client's words, still stored, precede it."""
        return any(
            turn.role is Role.CLIENT and turn.text is not None and turn.seq < self.turn.seq
            for turn in self.around
        )


@router.get(ADDRESS)
def practice_page(
    request: Request, session_id: Identifier, seq: Seq, services: ServicesDep, person: Counsellor
) -> Response:
    """Show the turn in a form."""
    found = _own_turn(services, person, session_id, seq)
    return _page(request, services, person, found, (found.turn.text or "")[:MAX_TEXT])


@router.post(ADDRESS)
def practise(
    request: Request,
    session_id: Identifier,
    seq: Seq,
    services: ServicesDep,
    person: Counsellor,
    text: Annotated[str, Form()] = "",
) -> Response:
    """Score the turn as it was said and as it was rewritten; neither is stored."""
    found = _own_turn(services, person, session_id, seq)
    wording, said = cleaned(text), found.turn.text
    if said is None:
        return _page(request, services, person, found, "", status=409)
    if not wording or len(wording) > MAX_TEXT:
        problem = f"Write between 1 and {MAX_TEXT} characters."
        kept = wording[:MAX_TEXT]
        return _page(request, services, person, found, kept, problem=problem, status=422)
    if services.practice is None or _why_closed(services, found) == OTHER_LANGUAGE:
        return _page(request, services, person, found, wording, status=409)
    turns = [SaidTurn(each.seq, each.role, each.text, each.late) for each in found.around]
    try:
        scores = services.practice.score(person.name, turns, seq, found.turn.role, [said, wording])
    except PracticeUnavailable as problem:
        return _page(request, services, person, found, wording, problem=str(problem), status=503)
    except TooManyTries as problem:
        answer = _page(
            request, services, person, found, wording, problem=str(problem), status=problem.status
        )
        answer.headers["Retry-After"] = str(problem.retry_after)
        return answer
    return _page(request, services, person, found, wording, scores=scores)


def cleaned(text: str) -> str:
    r"""The wording as turns have it: line feeds, no other control characters, no outer blanks.

    >>> cleaned(" How\r\nare\x00 you?\t")
    'How\nare you?'
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    kept = (c for c in lines if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs"))
    return "".join(kept).strip()


def _own_turn(services: Services, person: Person, session_id: str, seq: int) -> PracticeTurn:
    """The person's own turn of an ended session; reading it is audited.

    Raises:
        HTTPException: 404 if there is no such turn, or it is not the person's; 409 while the
            session is open.
    """
    store = services.store
    card = sessions.one(store, person.scope, session_id)
    if card is None:
        raise HTTPException(404)
    around = transcripts.read(
        store, person.scope, session_id, after_seq=seq - 1 - AROUND, limit=2 * AROUND + 1
    )
    around = [each for each in around if each.role.is_scored]
    turn = next((each for each in around if each.seq == seq), None)
    if turn is None or turn.role is not Role.COUNSELLOR or turn.speaker != person.speaker:
        raise HTTPException(404)
    if card.status is SessionStatus.OPEN:
        raise HTTPException(409)
    audit.record(store, person.name, AuditAction.READ_TRANSCRIPT, session_id, f"turn {seq}")
    info = bundle_info.one(store, card.bundle)
    return PracticeTurn(card, info, turn, around)


def _page(
    request: Request,
    services: Services,
    person: Person,
    found: PracticeTurn,
    text: str,
    *,
    scores: PracticeScores | None = None,
    problem: str = "",
    status: int = 200,
) -> Response:
    said = found.turn.text or ""
    both = scores.wordings if scores is not None else []
    return render(
        request,
        "practice.html",
        person,
        status,
        found=found,
        text=text,
        problem=problem,
        closed=_why_closed(services, found),
        stored=segments(said, _stored_spans(found)),
        wordings=[_wording(words, each) for words, each in zip((said, text), both, strict=False)],
        moves=_moves(both),
        answer=_answer_move(both),
        scores=scores,
        max_text=MAX_TEXT,
    )


def _why_closed(services: Services, found: PracticeTurn) -> str:
    """Why there is no form; empty if there is one."""
    if found.turn.text is None:
        return "The text of this turn has been deleted, so it cannot be practised."
    if services.practice is None:
        return OFF
    try:
        services.practice.require()
        if found.turn.unscored is not None or not services.practice.covers(found.card.lang):
            return OTHER_LANGUAGE
    except PracticeUnavailable as problem:
        return str(problem)
    return ""


def _stored_spans(found: PracticeTurn) -> dict[str, list[Span]]:
    """The words that the stored score marks."""
    score = found.turn.score(found.card.bundle)
    if score is None:
        return {}
    return {
        name: score.expressed[name].get("rationale", [])
        for name in MECHANISMS
        if name in score.expressed and name not in score.abstained
    }


def _wording(text: str, score: WordingScore) -> Wording:
    spans = {name: level.rationale for name, level in score.levels.items() if name in MECHANISMS}
    return Wording(text, segments(text, spans), score.truncated)


def _moves(scores: list[WordingScore]) -> list[Move]:
    if not scores:
        return []
    before, after = scores
    return [
        Move(title_of(name), badge_of(name), _reading(name, before), _reading(name, after))
        for name in MECHANISMS
        if name in before.levels and name in after.levels
    ]


def _answer_move(scores: list[WordingScore]) -> AnswerMove | None:
    """None without scores, or where nothing was said that the turn could answer."""
    if not scores:
        return None
    before, after = scores
    if before.answer is None or after.answer is None:
        return None
    return AnswerMove(
        before.answer,
        after.answer,
        fit(before.answer, before.lapse),
        fit(after.answer, after.lapse),
    )


def _reading(mechanism: str, score: WordingScore) -> Reading:
    level: Level = score.levels[mechanism]
    none, weak, strong = level.probabilities
    graded = mechanism != INTERPRETATIONS
    labels = [("weak", weak), ("strong", strong)] if graded else [("some", weak + strong)]
    return Reading(weak + 2 * strong, [("none", none), *labels], mechanism in score.abstained)
