"""Edits and deletions of stored turns.

The session is replayed with the new text, or without the turn: its turns in their order, with their
stored scores where nothing in their window has changed, and with new scores otherwise. So all that
follows from scores (aggregates, index, risks) is what it would have been. A turn that is encoded
again has left the window; its text is the stored one, in which personal details may be masked.

Alerts keep their course, because people have acted on them; the rules are evaluated once more.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from stream_app.contracts.events import Revision, Role, Turn, TurnDelete, TurnEdit, WireRole, utc
from stream_app.contracts.scores import Alert, Stage, TurnScore
from stream_app.core.measures import addressing, window
from stream_app.core.measures.aggregates import Aggregates
from stream_app.core.measures.crisis import CRISIS, THRESHOLD
from stream_app.core.measures.exchanges import Exchanges
from stream_app.core.measures.voices import Voices
from stream_app.core.measures.watch import Watch
from stream_app.core.measures.window import ScoringRequest, WindowState, WindowTurn
from stream_app.core.pipeline.encodings import ToEncode
from stream_app.core.pipeline.scoring_bundles import ScoringBundle
from stream_app.core.rules.alerts import Cause
from stream_app.core.rules.rules import NO_RULES
from stream_app.core.session.alerting import Alerting
from stream_app.core.session.batch import Revised
from stream_app.core.session.environment import Environment
from stream_app.core.session.past import PastSession, PastTurn, by_arrival
from stream_app.core.session.ports import HeadScores
from stream_app.core.session.session import (
    GONE,
    Fate,
    Session,
    ToEnd,
    ToScore,
    digest_of,
    id_digest,
)
from stream_app.core.session.session_state import Edits, SessionState
from stream_app.errors import ContractError
from stream_app.plain_text.copies import spoken

UNKNOWN_TURN: Final = "unknown-turn"
TURN_DELETED: Final = "turn-deleted"
TOO_LATE: Final = "too-late"
HELD: Final = "legal-hold"
MOST_REMOVED: Final = 1000
"""Turns of a session whose deletion is remembered; beyond, a deletion comes after its turn."""
_WIRE_ROLES: Final = {Role.CLIENT: WireRole.CLIENT, Role.COUNSELLOR: WireRole.COUNSELLOR}
_Key = tuple[int, Stage]
Attach = Callable[[Sequence[ToEncode]], None]


class Outcome(Struct, frozen=True):
    """The effect of an edit or a deletion; ``session`` None: none, or an erasure alone."""

    fate: Fate
    revised: Revised | None = None
    session: Session | None = None
    scores: Sequence[TurnScore] = ()
    alerts: Sequence[Alert] = ()


class _Moment(Struct, frozen=True):
    """Scores that became due with a turn; ``forgets``: turns before it, or it, are not scored."""

    requests: list[ScoringRequest]
    forgets: bool = False


def accept(
    state: SessionState, event: Revision, past: PastSession, bundle: ScoringBundle, attach: Attach
) -> Outcome:
    """Carry out an edit or a deletion on a copy of the state.

    Raises:
        ContractError: with code ``unknown-turn``, ``turn-deleted``, ``too-late`` or ``legal-hold``;
            nothing changed.
    """
    deletes = isinstance(event, TurnDelete)
    covered = bundle.environment.policy.covers(state.consent)
    decided = state.consent is not None or state.last_activity_at is not None
    if not deletes and not covered and decided:
        return Outcome(Fate.WITHHELD)
    seq = _named_seq(state, event)
    if seq == GONE or seq in state.removed:
        if deletes:
            return Outcome(Fate.DUPLICATE)
        raise ContractError(TURN_DELETED, "the turn was deleted before")
    turn = past.named(event)
    if turn is None:
        return _of_unknown(state, seq, past, deletes=deletes)
    if past.held:
        raise ContractError(HELD, "the session is on legal hold")
    if isinstance(event, TurnEdit) and _is_known(state, turn, event):
        return Outcome(Fate.DUPLICATE)
    known = state.last_activity_at is not None
    if isinstance(event, TurnEdit) and (turn.text is None or not known):
        raise ContractError(TOO_LATE, "the text of the turn, or its session's state, has expired")
    if not known:
        bundle_id = bundle.environment.bundle_id
        gone = Revised(event.session_id, turn.seq, turn.role, bundle_id, None)
        return Outcome(Fate.DELETED, gone)
    return _Replay(state, event, turn, past, bundle, attach).carried_out(reconsider=covered)


def _named_seq(state: SessionState, event: Revision) -> int | None:
    """The number of the turn, if the event or the state has it."""
    if event.seq is not None or event.turn_id is None:
        return event.seq
    return state.turn_ids.get(id_digest(event.turn_id))


def _is_known(state: SessionState, turn: PastTurn, event: TurnEdit) -> bool:
    """Whether the turn has this text already, or that of a later edit."""
    edits = state.edits.get(turn.seq)
    if edits is not None and utc(event.occurred_at) < edits.at:
        return True
    return state.window.digests.get(turn.seq) == digest_of(turn.role, event.text)


def _was_withheld(state: WindowState, seq: int | None, past: PastSession) -> bool:
    """Whether a turn without consent had this number: it was accepted, and nothing is stored."""
    if seq is None or seq >= state.next_seq or any(turn.seq == seq for turn in past.turns):
        return False
    return not any(low <= seq <= high for low, high in state.gaps)


def _of_unknown(
    state: SessionState, seq: int | None, past: PastSession, *, deletes: bool
) -> Outcome:
    """The outcome of an event whose turn is not stored."""
    if _was_withheld(state.window, seq, past):
        return Outcome(Fate.DUPLICATE if deletes else Fate.WITHHELD)
    if deletes and _may_come(state, seq):
        return Outcome(Fate.EARLY_DELETE)
    raise ContractError(UNKNOWN_TURN, "the session has no stored turn of this number or id")


def _may_come(state: SessionState, seq: int | None) -> bool:
    """Whether a turn of this number, or of an id without one, can still be accepted."""
    if state.last_activity_at is None or len(state.removed) >= MOST_REMOVED:
        return False
    return seq is None or window.placement_of(state.window, seq, 0) in (
        window.Placement.NEW,
        window.Placement.LATE,
    )


class _Replay:
    """The replay of one session."""

    def __init__(
        self,
        state: SessionState,
        event: Revision,
        turn: PastTurn,
        past: PastSession,
        bundle: ScoringBundle,
        attach: Attach,
    ) -> None:
        self._old = state
        self._event = event
        self._turn = turn
        self._bundle = bundle
        self._attach = attach
        self._policy = bundle.environment.policy.window
        own = (s for s in past.scores if s.bundle == bundle.environment.bundle_id)
        self._stored: dict[_Key, TurnScore] = {(s.seq, s.stage): s for s in own}
        self._past = list(by_arrival(past.turns))
        self._kept = {t.seq: t for t in (*state.window.history, *state.window.waiting.values())}
        self._people = {
            each.speaker: self._kept[each.seq].speaker
            for each in past.turns
            if each.seq in self._kept and self._kept[each.seq].speaker
        }
        deletes = isinstance(event, TurnDelete)
        self._removed = [*state.removed, turn.seq] if deletes else [*state.removed]
        self._session = Session(
            structs.replace(
                state,
                aggregates=Aggregates(),
                exchanges=Exchanges(),
                voices=Voices(),
                watch=Watch(),
                alerts={},
                risk=None,
                outcomes={},
                miti=None,
                closed=False,
                edits=dict(state.edits),
                removed=self._removed,
            ),
            _silent(bundle.environment),
        )

    def carried_out(self, *, reconsider: bool) -> Outcome:
        """Replay; ``reconsider``: evaluate the rules once more."""
        event, turn, state = self._event, self._turn, self._session.state
        _, before = self._walk(self._turns(), self._old.removed)
        state.window, moments = self._walk(self._turns(revised=True), self._removed)
        self._note_change(state)
        affected = self._affected(before, moments)
        self._encode(moments, affected, state.window)
        scores = self._add(moments, affected)
        self._finish(state)
        alerts: list[Alert] = []
        if reconsider and not state.closed:
            alerts = self._reconsidered(state, scores)
        new = [score for key, score in scores.items() if self._stored.get(key) != score]
        replayed = {seq for seq, _ in scores} | {turn.seq}
        gone = [key for key in self._stored if key not in scores and key[0] in replayed]
        revised = Revised(
            event.session_id,
            turn.seq,
            turn.role,
            self._bundle.environment.bundle_id,
            event.text if isinstance(event, TurnEdit) else None,
            [*gone, *((score.seq, score.stage) for score in new)],
        )
        fate = Fate.DELETED if isinstance(event, TurnDelete) else Fate.EDITED
        return Outcome(fate, revised, self._session, new, alerts)

    def _turns(self, *, revised: bool = False) -> list[WindowTurn]:
        """The turns in the order in which they arrived."""
        found = []
        for past in self._past:
            if past.seq == self._turn.seq and revised:
                if isinstance(self._event, TurnEdit):
                    found.append(self._read(past, self._event.text))
            elif past.seq in self._kept:
                found.append(structs.replace(self._kept[past.seq]))
            else:
                found.append(self._read(past, past.text))
        return found

    def _read(self, past: PastTurn, text: str | None) -> WindowTurn:
        """A turn without vectors, which follow if they are needed."""
        words = len(spoken(text).text.split()) if text is not None else 0
        digest = self._old.window.digests.get(past.seq, -1 - past.seq)
        if past.seq == self._turn.seq:
            digest = digest_of(past.role, text or "")
        elif past.words is not None:
            words = past.words
        turn = WindowTurn(
            seq=past.seq,
            role=past.role,
            occurred_at=past.occurred_at,
            digest=digest,
            words=words,
            late=past.late,
            withheld=past.unscored is not None or not past.role.is_scored,
        )
        self._note_people(turn, past)
        self._session.read_words(turn, text or "")
        return turn

    def _note_people(self, turn: WindowTurn, past: PastTurn) -> None:
        """Note who spoke, and whom a turn answers while its window knows it; else by order."""
        kept = self._kept.get(past.seq)
        if kept is not None:
            turn.speaker, turn.client, turn.named = kept.speaker, kept.client, kept.named
        elif not turn.withheld:
            turn.speaker = self._speaker_of(past)
            turn.client = turn.speaker if past.role is Role.CLIENT else 0

    def _speaker_of(self, past: PastTurn) -> int:
        """The digest of a speaker: the one that the state knows, where it can be told."""
        old = self._old
        if past.role is Role.COUNSELLOR and not old.voices.known and old.voices.speaker:
            return old.voices.speaker
        if past.role is Role.CLIENT and len(old.clients) == 1:
            return old.clients[0]
        return self._people.get(past.speaker) or addressing.digest(past.speaker)

    def _walk(
        self, turns: Sequence[WindowTurn], removed: Collection[int]
    ) -> tuple[WindowState, list[_Moment]]:
        """Let the turns pass through a window of their own, in which nothing is waited for."""
        old, policy = self._old.window, self._policy
        state, moments = WindowState(), []
        absent = {*removed, *(turn.seq for turn in turns if turn.late)}
        for turn in turns:
            if turn.late:
                moments.append(_Moment(window.insert_late(state, turn, policy)))
            elif turn.seq >= old.next_seq:
                state.waiting[turn.seq] = turn
            else:
                unseen = _has_unseen(state.next_seq, turn.seq, old.gaps, absent)
                state.next_seq = turn.seq
                requests = window.push(state, turn, policy)
                moments.append(_Moment(requests, unseen or turn.withheld))
        moments.append(_Moment([], _has_unseen(state.next_seq, old.next_seq, old.gaps, absent)))
        state.next_seq = old.next_seq
        state.gaps, state.refused = [*old.gaps], [*old.refused]
        ahead = [seq for seq in removed if seq >= old.next_seq]
        moments += [_Moment(window.pass_over(state, seq, policy) or []) for seq in ahead]
        if self._old.closed:
            moments.append(_Moment(window.flush(state, policy)))
        return state, moments

    def _note_change(self, state: SessionState) -> None:
        """Note what later events are compared with."""
        seq, known = self._turn.seq, self._old.window.digests
        digests = {other: digest for other, digest in known.items() if other != seq}
        if isinstance(self._event, TurnEdit):
            digests[seq] = digest_of(self._turn.role, self._event.text)
            edits = state.edits.get(seq)
            earlier = [*edits.earlier] if edits is not None else []
            if seq in known:
                earlier.append(known[seq])
            state.edits[seq] = Edits(utc(self._event.occurred_at), earlier)
        else:
            state.edits.pop(seq, None)
            state.unscored_turns -= self._turn.unscored is not None
        state.window.digests = dict(sorted(digests.items()))

    def _affected(self, before: Sequence[_Moment], now: Sequence[_Moment]) -> set[_Key]:
        """Return the turns to rescore, because the turn or its window has changed."""
        contexts = {_key(request): _context(request) for request in _requests(before)}
        found = set()
        for request in _requests(now):
            key, context = _key(request), _context(request)
            has_turn = self._turn.seq in (request.turn.seq, *(seq for seq, _ in context))
            if has_turn or contexts.get(key) != context or key not in self._stored:
                found.add(key)
        return found

    def _encode(
        self, moments: Sequence[_Moment], affected: Collection[_Key], state: WindowState
    ) -> None:
        """Encode what has to be scored, and what following turns will need."""
        needed = {turn.seq: turn for turn in (*state.history, *state.waiting.values())}
        for request in _requests(moments):
            if _key(request) in affected:
                turns = (request.turn, *(neighbour.turn for neighbour in request.context))
                needed |= {turn.seq: turn for turn in turns}
        texts = {past.seq: past.text for past in self._past}
        if isinstance(self._event, TurnEdit):
            texts[self._turn.seq] = self._event.text
        self._attach(
            [
                ToEncode(self._as_event(turn, text), turn, None, self._bundle)
                for turn in needed.values()
                if not turn.vectors and not turn.withheld and (text := texts[turn.seq]) is not None
            ]
        )
        state.history = [turn for turn in state.history if turn.vectors]
        left = {turn.seq for turn in state.history}
        state.unfinished = [seq for seq in state.unfinished if seq in left]

    def _as_event(self, turn: WindowTurn, text: str) -> Turn:
        return Turn(
            session_id=self._event.session_id,
            seq=turn.seq,
            speaker_id=turn.role.value,
            role=_WIRE_ROLES[turn.role],
            text=text,
            occurred_at=turn.occurred_at,
        )

    def _add(self, moments: Sequence[_Moment], affected: Collection[_Key]) -> dict[_Key, TurnScore]:
        """Add stored and new scores in the order of the turns."""
        session, old = self._session, self._old
        new = [r for r in _requests(moments) if self._is_new(r, affected)]
        made = iter(self._bundle.scorer.score(new) if new else ())
        found: dict[_Key, TurnScore] = {}
        for moment in moments:
            if moment.forgets and old.last_activity_at is not None:
                session.end_alerts(ToEnd(old.last_activity_at, old.facts, Cause.WITHHELD))
            for step in session.steps_of(moment.requests):
                if not isinstance(step, ToScore):
                    continue
                key = _key(step.request)
                if self._is_new(step.request, affected):
                    found[key], _ = session.add(step, next(made))
                elif (score := self._stored.get(key)) is not None:
                    again = structs.replace(step, request=_as_stored(step.request, score))
                    found[key], _ = session.add(again, _heads(score))
        return found

    def _is_new(self, request: ScoringRequest, affected: Collection[_Key]) -> bool:
        """Whether to score it now: it can be, and the session's bundle is to score the turn."""
        seq = request.turn.seq
        due = seq >= self._old.window.next_seq or any(
            (seq, stage) in self._stored for stage in Stage
        )
        turns = (request.turn, *(neighbour.turn for neighbour in request.context))
        return due and _key(request) in affected and all(turn.vectors for turn in turns)

    def _finish(self, state: SessionState) -> None:
        """Close the session if it was, and give it its alerts back."""
        old, session = self._old, self._session
        at = old.last_activity_at
        if old.closed and at is not None:
            state.closed = True
            session.end_alerts(ToEnd(old.ended_at or at, state.facts, Cause.END))
        elif not self._bundle.environment.policy.covers(old.consent) and at is not None:
            session.end_alerts(ToEnd(at, state.facts, Cause.WITHHELD))
        state.alerts = old.alerts
        if old.watch.clock is not None:
            state.watch.reach(old.watch.clock)

    def _reconsidered(self, state: SessionState, scores: Mapping[_Key, TurnScore]) -> list[Alert]:
        """Evaluate the rules; crisis language in a new text counts as in a late turn."""
        seq = state.watch.last_seq
        if isinstance(self._event, TurnEdit):
            seq = self._turn.seq
            stages = (scores.get((seq, stage)) for stage in (Stage.PROVISIONAL, Stage.FINAL))
            first = next((score for score in stages if score is not None), None)
            crisis = first.client.get(CRISIS, {}).get("yes") if first is not None else None
            if crisis is not None and crisis >= THRESHOLD:
                state.watch.crisis = crisis
        return self._bundle.environment.alerting.reconsider(state, seq, state.facts)


def _silent(environment: Environment) -> Environment:
    """The environment of a replay, in which no rule is evaluated."""
    silent = Alerting(NO_RULES, environment.empathy, environment.bundle_id)
    return structs.replace(environment, alerting=silent)


def _has_unseen(
    low: int, high: int, gaps: Sequence[tuple[int, int]], absent: Collection[int]
) -> bool:
    """Whether a number from ``low`` to below ``high`` had a turn that was withheld."""
    known = sum(low <= seq < high for seq in absent)
    known += sum(max(0, min(high, last + 1) - max(low, first)) for first, last in gaps)
    return high - low > known


def _requests(moments: Sequence[_Moment]) -> list[ScoringRequest]:
    return [request for moment in moments for request in moment.requests]


def _key(request: ScoringRequest) -> _Key:
    return request.turn.seq, request.stage


def _context(request: ScoringRequest) -> list[tuple[int, int]]:
    return [(neighbour.turn.seq, neighbour.distance) for neighbour in request.context]


def _as_stored(request: ScoringRequest, score: TurnScore) -> ScoringRequest:
    """The request with what its stored score says of the turn."""
    turn = structs.replace(
        request.turn, crisis=False, truncated=score.truncated, intents=dict(score.intents)
    )
    return structs.replace(request, turn=turn)


def _heads(score: TurnScore) -> HeadScores:
    return HeadScores(
        score.expressed, score.perceived, score.client, score.confidence, score.abstained
    )
