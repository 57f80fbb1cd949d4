"""A session: the only place where consent, window, aggregates, risk and alerts change.

A batch is processed in two passes. ``accept`` takes the events in log order and returns the *steps*
that become due. The model scores all requests of the batch in one call; then ``add`` and
``end_alerts`` carry out the steps, in the same order. A step stores what was known at its event, so
that batches of any size give the same result.
"""

import hashlib
import zlib
from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Final

import msgspec
from msgspec import Struct, structs

from stream_app.contracts.events import (
    Consent,
    Outcome,
    Questionnaire,
    Role,
    SessionEnd,
    Turn,
    TurnDelete,
    utc,
)
from stream_app.contracts.scores import Alert, SessionScore, SessionStatus, TurnScore, Unscored
from stream_app.core.measures import addressing, miti, window
from stream_app.core.measures.aggregates import contribution
from stream_app.core.measures.crisis import CRISIS, LISTED, find_phrases
from stream_app.core.measures.empathy import EmpathySummary, session_empathy, turn_value
from stream_app.core.measures.heads import Dimension
from stream_app.core.measures.outcomes import applicable, outcome_risks
from stream_app.core.measures.watch import Facts
from stream_app.core.measures.window import Placement, ScoringRequest, WindowTurn
from stream_app.core.rules.alerts import Cause
from stream_app.core.session.consent import ConsentRecord, record_consent, state_in_turn
from stream_app.core.session.environment import Environment
from stream_app.core.session.origin import refuse_contradiction
from stream_app.core.session.ports import HeadScores
from stream_app.core.session.restrictions import Outputs, without_restricted
from stream_app.core.session.session_state import SessionState
from stream_app.core.session.turn_languages import UNKNOWN, SpokenIn, primary
from stream_app.errors import ContractError
from stream_app.plain_text.copies import spoken

WITHHELD_OUTCOMES_KEPT: Final = 64
EARLY_ENDS_KEPT: Final = 8
AFTER_END: Final = "after-end"
GONE: Final = -1
"""Stands for the number of a turn that was deleted before it came."""
ID_TAKEN: Final = "turn-id-taken"


class Fate(Enum):
    """Result of accepting an event."""

    ACCEPTED = "accepted"
    LATE = "late"
    WITHHELD = "withheld"
    DUPLICATE = "duplicate"
    REPEATED = "repeated"
    ENDED = "ended"
    OUTCOME = "outcome"
    CONSENT = "consent"
    LANGUAGE = "language"
    ASIDE = "aside"
    EARLY_END = "early-end"
    EDITED = "edited"
    DELETED = "deleted"
    EARLY_DELETE = "early-delete"


class ToScore(Struct, frozen=True):
    """A score that is due.

    ``at``: the session's event time. ``facts``: what was known by then. ``status``: alerts are
    raised while the session is open; after its end, the risks are those of a whole session.
    """

    request: ScoringRequest
    at: datetime
    facts: Facts
    status: SessionStatus


class ToEnd(Struct, frozen=True):
    """Alerts to end, because the session ended or a turn is not scored (``cause``)."""

    at: datetime
    facts: Facts
    cause: Cause


Step = ToScore | ToEnd
Conversed = Turn | SessionEnd | Outcome | Consent | Questionnaire
"""Events that add to a session."""


class Accepted(Struct, frozen=True):
    """Result of accepting an event, and the steps that became due.

    ``turn``: to be stored, and to be encoded unless it is ``unscored``. ``from_first_counsellor``:
    the first turn of the session's first counsellor, who may read the session. ``consent``: a
    record that the event stated. ``language``: of a turn that is unscored for it.
    """

    fate: Fate
    steps: Sequence[Step] = ()
    turn: WindowTurn | None = None
    from_first_counsellor: bool = False
    consent: ConsentRecord | None = None
    unscored: Unscored | None = None
    language: str | None = None

    @property
    def is_scored(self) -> bool:
        """Whether it is a turn that gets a score."""
        return self.turn is not None and self.unscored is None

    @property
    def changes(self) -> bool:
        """Whether the session's state has changed."""
        return self.fate not in (Fate.DUPLICATE, Fate.OUTCOME)


class Session:
    """One conversation during a batch; ``state`` is the stored part."""

    def __init__(self, state: SessionState, environment: Environment) -> None:
        self.state = state
        self._env = environment
        self._risk_by_turn: list[tuple[int, float]] = []
        self._empathy: tuple[Facts, EmpathySummary | None] | None = None

    def move_to(self, environment: Environment) -> None:
        """Continue with another bundle's environment, before the session has scores of any."""
        self._env = environment
        self._empathy = None

    @property
    def status(self) -> SessionStatus:
        """Open until the session's end has been accepted."""
        return SessionStatus.CLOSED if self.state.closed else SessionStatus.OPEN

    @property
    def has_scored_turn(self) -> bool:
        """Whether a turn has a score, or gets one with this batch."""
        return bool(self.state.aggregates.turns or self.state.window.history)

    @property
    def is_unheard(self) -> bool:
        """Whether nothing is known of the session but that turns of it were refused."""
        state = self.state
        return state.started_at is None and not state.early_ends and not state.consent_records

    def accept(
        self, event: Conversed, unscored: Unscored | None = None, language: SpokenIn = UNKNOWN
    ) -> Accepted:
        """Accept the next event of the log.

        ``unscored``: why a turn must not be scored, unless the list of ``core.crisis`` finds a
        phrase in it. ``language``: of a turn.

        Edits and deletions need what is stored of the session (``core.pipeline.revision``).

        Raises:
            ContractError: with code ``conflicting-duplicate``, ``turn-id-taken``,
                ``contradicts-session`` or ``after-end``; nothing changed.
        """
        match event:
            case Turn():
                return self._accept_turn(event, unscored, language)
            case SessionEnd():
                return self.end(event)
            case Outcome() | Questionnaire():
                return Accepted(Fate.WITHHELD if self._withholds(event) else Fate.OUTCOME)
            case Consent():
                return self._accept_consent(event)

    def end(self, event: SessionEnd) -> Accepted:
        """Close the session; all scores waiting for following turns become due.

        An end before the first turn is kept without effect, also when it is read again.
        """
        state = self.state
        checksum = zlib.crc32(msgspec.json.encode(event))
        if state.closed or checksum in state.early_ends:
            return Accepted(Fate.DUPLICATE)
        if state.started_at is None:
            state.early_ends.append(checksum)
            del state.early_ends[:-EARLY_ENDS_KEPT]
            return Accepted(Fate.EARLY_END)
        state.ended_at = at = utc(event.occurred_at)
        state.end_reason = event.reason if self._is_covered else None
        return Accepted(Fate.ENDED, self._close(at))

    def _close(self, at: datetime) -> list[Step]:
        requests = window.flush(self.state.window, self._env.policy.window)
        steps = self._steps(requests, at, SessionStatus.OPEN)
        self.state.closed = True
        return [*steps, ToEnd(at, self.state.facts, Cause.END)]

    def pass_over(self, seq: int) -> list[Step] | None:
        """Stop waiting for a turn that was refused; None if nothing changes.

        If its producer mends it and sends it again, it is late, unless no later turn was there.
        """
        state = self.state
        if state.closed:
            return None
        requests = window.pass_over(state.window, seq, self._env.policy.window)
        if requests is None or state.last_activity_at is None:
            return None if requests is None else []
        return self._steps(requests, state.last_activity_at, self.status)

    def delete_ahead(self, event: TurnDelete) -> list[Step]:
        """Note that a turn is deleted that has not come, and stop waiting for it."""
        if event.seq is None:
            self._note_id(event.turn_id, GONE)
            return []
        self.state.removed.append(event.seq)
        return self.pass_over(event.seq) or []

    def flush_idle(self) -> list[Step]:
        """Make every score due that waits for following turns; call it on a copy.

        The session itself must not change: if another turn arrives, the window continues and the
        final scores are rewritten.
        """
        at = self.state.last_activity_at or self.state.ended_at
        if at is None:
            return []
        requests = window.flush(self.state.window, self._env.policy.window)
        return self._steps(requests, at, SessionStatus.IDLE)

    def fire_due(self, now: datetime) -> list[Alert]:
        """Fire the timed rules that are due by ``now`` without an event."""
        if self.state.wake_at is None or self.state.wake_at > now:
            return []
        return self._env.alerting.fire_overdue(self.state, now, self.state.facts)

    def add(self, step: ToScore, heads: HeadScores) -> tuple[TurnScore, list[Alert]]:
        """Add a score; the first one of a counsellor turn updates the risk."""
        state, env, request = self.state, self._env, step.request
        request.turn.readings = heads.readings
        alerts: list[Alert] = []
        heads = without_restricted(_with_phrases(heads, request.turn), request.restricted)
        if step.status is SessionStatus.OPEN:
            alerts = env.alerting.fire_overdue(state, step.at, step.facts)
        score = self._turn_score(request, heads)
        turn = request.turn
        answers = request.is_first and score.role is Role.COUNSELLOR and not score.late
        if answers:
            alerts += self._hand_over(step, turn)
        self._aggregate(score, step.facts, request)
        if answers:
            state.voices.count(turn.speaker, turn.client)
        if request.is_first:
            state.aggregates.count_turn(turn.role, turn.words, turn.late)
            state.watch.note(score)
            if score.role is Role.COUNSELLOR:
                score = self._with_risk(score, step)
            elif step.status is SessionStatus.CLOSED:
                self._assess(step.facts, closed=True)
            if step.status is SessionStatus.OPEN:
                alerts += env.alerting.observe(state, score, step.facts)
        return score, alerts

    def end_alerts(self, step: ToEnd) -> list[Alert]:
        """End pending and firing alerts; an unscored turn ends only pending ones."""
        state, alerting = self.state, self._env.alerting
        alerts = alerting.fire_overdue(state, step.at, step.facts)
        if step.cause is Cause.END:
            self._assess(step.facts, closed=True)
        else:
            state.watch.forget_waiting()
            state.exchanges.forget()
            state.voices.forget()
            self._empathy = None
        if step.cause is Cause.LANGUAGE:
            return alerts + alerting.lapse(state, step.at, step.facts, step.cause)
        return alerts + alerting.close(state, step.at, step.facts, step.cause)

    def score(self, status: SessionStatus | None = None) -> SessionScore:
        """The session's aggregates as a message; ``status`` overrides the session's own."""
        state = self.state
        found = self._empathy_so_far(state.facts)
        return SessionScore(
            **structs.asdict(state.aggregates.measures()),
            session_id=state.session_id,
            bundle=self._env.bundle_id,
            status=status or self.status,
            started_at=state.started_at,
            last_activity_at=state.last_activity_at,
            turns=state.aggregates.turns,
            late_turns=state.aggregates.late_turns,
            withheld_turns=state.withheld_turns,
            unscored_turns=state.unscored_turns,
            low_empathy_risk=state.risk,
            empathy_index=found.index if found else None,
            empathy_interval=(found.low, found.high) if found else None,
            empathy_percentile=found.percentile if found else None,
            answered_share=found.answered_share if found else None,
            missed_opportunities=found.missed if found else [],
            outcome_risks=state.outcomes,
            risk_by_turn=self._risk_by_turn,
            miti=miti.miti_summary(state.miti),
        )

    def _accept_turn(self, event: Turn, unscored: Unscored | None, language: SpokenIn) -> Accepted:
        state = self.state
        digest = digest_of(event.speaker_role, event.text)
        edits = state.edits.get(event.seq)
        if event.seq in state.removed or (edits is not None and digest in edits.earlier):
            return Accepted(Fate.DUPLICATE)
        if self._has_id_of_other(event, digest):
            return Accepted(Fate.REPEATED, self.pass_over(event.seq) or ())
        placement = window.placement_of(state.window, event.seq, digest)
        late = placement is Placement.LATE
        if placement is Placement.DUPLICATE:
            return Accepted(Fate.DUPLICATE)
        if placement is Placement.CONFLICT:
            raise ContractError(
                "conflicting-duplicate", "another turn with this seq was accepted before"
            )
        refuse_contradiction(event, state)
        if late or not state.closed:
            return self._take_turn(event, unscored, language, digest, late=late)
        ended_at = state.ended_at if state.started_at is not None else None
        if ended_at is not None and utc(event.occurred_at) > ended_at:
            raise ContractError(AFTER_END, "the session has ended and this seq is new")
        state.closed, state.ended_at = False, ended_at
        accepted = self._take_turn(event, unscored, language, digest, late=False)
        if ended_at is None:  # an earlier release took an end before the first turn for the end
            return accepted
        return structs.replace(accepted, steps=[*accepted.steps, *self._close(ended_at)])

    def _note_id(self, turn_id: str | None, seq: int) -> None:
        """Note the number of the turn with this id."""
        known = self.state.turn_ids
        if turn_id is not None:
            known[id_digest(turn_id)] = seq
            for oldest in [*known][: -window.DIGESTS_KEPT]:
                del known[oldest]

    def _has_id_of_other(self, event: Turn, digest: int) -> bool:
        """Whether it is a turn that was accepted with another number.

        Raises:
            ContractError: with code ``turn-id-taken``: the other one has other words.
        """
        state = self.state
        seq = state.turn_ids.get(id_digest(event.turn_id)) if event.turn_id is not None else None
        if seq is None or seq == event.seq:
            return False
        edits = state.edits.get(seq)
        words = {state.window.digests.get(seq, digest), *(edits.earlier if edits else ())}
        if digest not in words:
            raise ContractError(ID_TAKEN, "another turn with this turn_id was accepted before")
        return True

    def _take_turn(
        self,
        event: Turn,
        unscored: Unscored | None,
        language: SpokenIn,
        digest: int,
        *,
        late: bool,
    ) -> Accepted:
        """Accept a turn that is new or late; one that its session's end overtook reopens it."""
        state = self.state
        stated = state_in_turn(state, event)
        self._note_facts(event, utc(event.occurred_at))
        if unscored is not None and self._is_crisis(event):
            unscored = None  # the list must not be silenced by the words around its phrase
        turn = WindowTurn(
            seq=event.seq,
            role=event.speaker_role,
            occurred_at=utc(event.occurred_at),
            digest=digest,
            words=len(spoken(event.text).text.split()),
            late=late,
            withheld=unscored is not None or event.is_aside or not self._is_covered,
        )
        self._note_people(event, turn)
        self._note_id(event.turn_id, event.seq)
        self.read_words(turn, event.text)
        requests = window.push(state.window, turn, self._env.policy.window)
        steps = self._steps(requests, turn.occurred_at, self.status)
        if self._is_covered:
            first = event.speaker_role is Role.COUNSELLOR and not state.has_counsellor
            state.has_counsellor = state.has_counsellor or first
            state.analysed = True
            if event.is_aside:  # nobody answers it, and it ends no wait
                return Accepted(Fate.ASIDE, steps, turn, consent=stated)
            if language.clear and language.tag is not None:
                name = primary(language.tag)
                state.languages[name] = state.languages.get(name, 0) + 1
            if unscored is not None:
                state.unscored_turns += 1
                if not late:
                    steps.append(ToEnd(turn.occurred_at, state.facts, Cause.LANGUAGE))
                return Accepted(Fate.LANGUAGE, steps, turn, first, stated, unscored, language.name)
            return Accepted(Fate.LATE if late else Fate.ACCEPTED, steps, turn, first, stated)
        state.withheld_turns += 1
        if not late or stated is not None:  # a late turn may withdraw the consent
            steps.append(ToEnd(turn.occurred_at, state.facts, Cause.WITHHELD))
        return Accepted(Fate.WITHHELD, steps, consent=stated)

    def _is_crisis(self, event: Turn) -> bool:
        """Whether the list of ``core.measures.crisis`` finds a phrase in a client's words."""
        heard = event.speaker_role is Role.CLIENT and not self._restricts_clients
        return heard and self._is_covered and bool(find_phrases(event.text))

    def _note_people(self, event: Turn, turn: WindowTurn) -> None:
        """Note who speaks, and whom the turn answers, if it says so."""
        state = self.state
        if turn.withheld:
            return
        turn.speaker = addressing.digest(event.speaker_id)
        if turn.role is Role.CLIENT:
            state.clients = addressing.with_client(state.clients, event.speaker_id)
            turn.client = turn.speaker
        else:
            turn.client = addressing.answered(event, state.clients)
            turn.named = turn.client != 0

    def _accept_consent(self, event: Consent) -> Accepted:
        """Apply a consent record; alerts end with the consent."""
        state = self.state
        record = record_consent(state, event)
        if record is None:
            return Accepted(Fate.DUPLICATE)
        steps: list[Step] = []
        if not self._is_covered and not state.closed:
            at = state.last_activity_at or record.occurred_at
            steps.append(ToEnd(at, state.facts, Cause.WITHHELD))
        return Accepted(Fate.CONSENT, steps, consent=record)

    def read_words(self, turn: WindowTurn, text: str) -> None:
        """Look for crisis language in a client's words, unless it is restricted."""
        if turn.role is Role.CLIENT and self._restricts_clients:
            turn.intents = None
        elif turn.role is Role.CLIENT and not turn.withheld:
            turn.crisis = bool(find_phrases(text))

    def steps_of(self, requests: list[ScoringRequest]) -> list[Step]:
        """Steps that add the scores of a replay, at the times of their turns."""
        at = self.state.last_activity_at
        return [] if at is None else self._steps(requests, at, SessionStatus.OPEN)

    @property
    def _is_covered(self) -> bool:
        return self._env.policy.covers(self.state.consent)

    def _withholds(self, outcome: Outcome | Questionnaire) -> bool:
        """Whether to withhold an outcome; once withheld, it stays so when the log is read again."""
        withheld = self.state.withheld_outcomes
        checksum = zlib.crc32(msgspec.json.encode(outcome))
        if checksum in withheld:
            return True
        if self._is_covered:
            return False
        withheld.append(checksum)
        del withheld[:-WITHHELD_OUTCOMES_KEPT]
        return True

    def _note_facts(self, turn: Turn, at: datetime) -> None:
        """Update session-level facts; times do not depend on the arrival order."""
        state = self.state
        state.started_at = min(state.started_at or at, at)
        state.last_activity_at = max(state.last_activity_at or at, at)
        state.domain = state.domain or (turn.domain.value if turn.domain else None)
        state.team = state.team or turn.team
        if state.approach is None:
            given = turn.approach.value if turn.approach else None
            state.approach = given or self._env.policy.approaches.of(state.domain, state.team)
        if not turn.is_aside:  # a bot may greet in another language
            state.lang = state.lang or turn.lang
        pinned = state.baselines
        if state.channel is None and turn.channel is not None:
            state.channel = turn.channel
            found = self._env.baselines.of_channel(turn.channel)
            state.baselines = pinned = structs.replace(pinned, channel=found)
        covered = self._is_covered  # otherwise nothing about a person is kept
        if covered and turn.speaker_role is Role.COUNSELLOR and not pinned.counsellor_known:
            found = self._env.baselines.of_counsellor(turn.speaker_id)
            state.baselines = structs.replace(pinned, counsellor=found, counsellor_known=True)

    def _steps(
        self, requests: list[ScoringRequest], at: datetime, status: SessionStatus
    ) -> list[Step]:
        """Convert requests to steps, each at the time of the turn that made it due.

        A final score is due with the first score of the next turn; the last ones with the event,
        ``at``.
        """
        facts = self.state.facts
        restricted = self._restricted(facts)
        steps: list[Step] = []
        for request in reversed(requests):
            if request.is_first:
                at = request.turn.occurred_at
            if restricted:
                request = structs.replace(request, restricted=restricted)  # noqa: PLW2901
            steps.append(ToScore(request, at, facts, status))
        steps.reverse()
        return steps

    @property
    def _restricts_clients(self) -> bool:
        return Dimension.CLIENT in self._restricted(self.state.facts)

    def _restricted(self, facts: Facts) -> Outputs:
        return self._env.policy.restrictions.of(facts.domain, facts.channel, facts.team)

    def _turn_score(self, request: ScoringRequest, heads: HeadScores) -> TurnScore:
        turn = request.turn
        return TurnScore(
            session_id=self.state.session_id,
            seq=turn.seq,
            stage=request.stage,
            bundle=self._env.bundle_id,
            role=turn.role,
            occurred_at=turn.occurred_at,
            late=turn.late,
            truncated=turn.truncated,
            expressed=heads.expressed,
            perceived=heads.perceived,
            client=heads.client,
            confidence=heads.confidence,
            abstained=heads.abstained,
            intents=_intents(request),
        )

    def _hand_over(self, step: ToScore, turn: WindowTurn) -> list[Alert]:
        """Restart alerts and risk if another counsellor speaks now: they are about that one."""
        state, alerts = self.state, list[Alert]()
        turns = state.aggregates.counsellor.turns
        if not state.voices.hear(turn.speaker, turns, state.exchanges):
            return alerts
        if step.status is SessionStatus.OPEN:
            alerts = self._env.alerting.hand_over(state, step.at, step.facts, turn.seq)
        state.risk = None
        state.watch.risks = []
        self._empathy = None
        return alerts

    def _aggregate(self, score: TurnScore, facts: Facts, request: ScoringRequest) -> None:
        """Add the score to the aggregates, or replace the turn's provisional one."""
        state, empathy = self.state, self._env.empathy
        after = self._env.policy.window.after
        state.aggregates.observe(contribution(score, self._env.kept), after, score.late, score.role)
        state.miti = miti.counted(state.miti, score, facts.approach, after)
        if empathy is not None and not score.late:
            here = empathy.of(facts.domain, facts.approach)
            value = turn_value(score, here, request.uses)
            turn, weighing = request.turn, here.weighing
            state.exchanges.observe(
                score.role, score.seq, value, after, weighing, turn.client, turn.named
            )
            state.voices.observe(turn, value, after, weighing)
            self._empathy = None

    def _with_risk(self, score: TurnScore, step: ToScore) -> TurnScore:
        self._assess(step.facts, closed=step.status is SessionStatus.CLOSED)
        risk = self.state.risk
        if risk is None:
            return score
        self.state.watch.note_risk(risk)
        self._risk_by_turn.append((score.seq, risk))
        return structs.replace(score, low_empathy_risk=risk)

    def _assess(self, facts: Facts, *, closed: bool) -> None:
        """Compute the risks from the scores so far."""
        state = self.state
        found = self._empathy_so_far(facts)
        if state.voices.speaking is not None:
            found = session_empathy(state.own_exchanges, facts, self._env.empathy)
        state.risk = found.risk if found is not None else None
        if self._restricted(facts):
            state.outcomes = {}  # they are computed from both outputs
        elif models := applicable(self._env.outcomes, facts.domain, facts.approach):
            summary = state.aggregates.summary()
            state.outcomes = outcome_risks(
                models, summary, facts.domain, facts.approach, ended=closed
            )
        elif self._env.outcomes:
            state.outcomes = {}

    def _empathy_so_far(self, facts: Facts) -> EmpathySummary | None:
        """The session's empathy; computed once until a further turn is scored."""
        if self._empathy is None or self._empathy[0] != facts:
            self._empathy = facts, session_empathy(self.state.exchanges, facts, self._env.empathy)
        return self._empathy[1]


def digest_of(role: Role, text: str) -> int:
    """Distinguishes a duplicate from another turn with the same number."""
    return zlib.crc32(f"{role.value}\n{text}".encode())


def id_digest(turn_id: str) -> int:
    """Stands for a turn's id; of 64 bits, because equal ones would drop a turn."""
    return int.from_bytes(hashlib.blake2b(turn_id.encode(), digest_size=8).digest())


def _intents(request: ScoringRequest) -> dict[str, float]:
    restricted = request.turn.role is Role.CLIENT and Dimension.CLIENT in request.restricted
    return {} if restricted else request.turn.intents or {}


def _with_phrases(heads: HeadScores, turn: WindowTurn) -> HeadScores:
    """The scores, with crisis language for certain where the list has found a phrase."""
    if not turn.crisis:
        return heads
    return structs.replace(
        heads, client={**heads.client, CRISIS: {"no": 1.0 - LISTED, "yes": LISTED}}
    )
