"""From a batch of received events to everything that is to be stored and sent.

One way, in three passes over the batch: *admit* (which turns are new and may be scored; these are
encoded, once, where they do not come encoded), *place* (put them into their windows, collect the
scores that are due) and *fold* (add each score to its session, in the order of the log). The
scorer is the only port; batches of any size give the same result.
"""

import zlib
from collections import Counter
from collections.abc import Collection
from datetime import datetime

import msgspec
from msgspec import Struct, field, structs

from stream_app.contracts.events import Event, Outcome, Role, SessionEnd, Turn, utc
from stream_app.contracts.scores import (
    Alert,
    DeadLetter,
    SessionScore,
    SessionStatus,
    Stage,
    TurnScore,
)
from stream_app.core import miti, window
from stream_app.core.aggregates import contribution
from stream_app.core.alerting import Alerting
from stream_app.core.alerts import Cause
from stream_app.core.approaches import Approaches
from stream_app.core.baselines import BaselineBook, NoBaselines
from stream_app.core.empathy import session_empathy, turn_value
from stream_app.core.outcomes import outcome_risks
from stream_app.core.ports import Encoding, HeadScores, Scorer
from stream_app.core.rules import NO_RULES, RuleSet
from stream_app.core.session import (
    SessionState,
    Versioned,
    pack,
    session_score,
    unpack,
)
from stream_app.core.watch import Facts
from stream_app.core.window import EncodedTurn, Placement, Target, WindowPolicy
from stream_app.errors import ContractError

WITHHELD_OUTCOMES_KEPT = 64


class Source(Struct, frozen=True):
    """Where an event stood in the log."""

    topic: str
    partition: int
    offset: int


class Received(Struct, frozen=True):
    """One record of the log: its bytes, and the event in it or what is wrong with it.

    ``encoding`` of a turn, if somebody has made it already. ``appended_at``: by the broker's clock,
    where that is known.
    """

    source: Source
    raw: bytes
    event: Event | ContractError
    produced_at: datetime | None = None
    encoding: Encoding | None = None
    appended_at: datetime | None = None


class SetAside(Struct, frozen=True):
    """A dead letter with the original bytes."""

    letter: DeadLetter
    raw: bytes


class StoredTurn(Struct, frozen=True):
    """A turn as it goes to the store; the store redacts the text."""

    turn: Turn
    late: bool
    produced_at: datetime | None = None


class BatchResult(Struct):
    """What one batch leads to."""

    turns: list[StoredTurn] = field(default_factory=list)
    turn_scores: list[TurnScore] = field(default_factory=list)
    session_scores: list[SessionScore] = field(default_factory=list)
    sessions: dict[str, Versioned] = field(default_factory=dict)
    alerts: list[Alert] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    dead_letters: list[SetAside] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


class Policy(Struct, frozen=True):
    """Settings of the core."""

    window: WindowPolicy
    rules: RuleSet = NO_RULES
    require_consent: bool = True
    approaches: Approaches = Approaches()


class _Due(Struct):
    """One score that is due; or, where ``target`` is None, why the rules look no further.

    ``now``: the time that the session has reached by then. ``facts``: what was known when the event
    came; later events of the batch must not be seen. ``alerting`` is false for what comes after the
    end: a session that is over calls nobody. ``ended``: it came with the session's end or after it.
    """

    state: SessionState
    target: Target | None
    now: datetime
    facts: Facts
    alerting: bool = True
    cause: Cause = Cause.END
    ended: bool = False


class _Admission(Struct):
    """By position in the batch: encodings of turns that may be scored; outcomes to be kept."""

    encodings: dict[int, Encoding] = field(default_factory=dict)
    outcomes: set[int] = field(default_factory=set)


class _Places(Struct):
    """What the placing pass collects."""

    due: list[_Due] = field(default_factory=list)
    risk_points: dict[str, list[tuple[int, float]]] = field(default_factory=dict)


class Pipeline:
    """Turns batches into results; holds no state of its own.

    The rules in force (``alerting.adopt``) and the baselines may be changed between batches.
    """

    def __init__(
        self, scorer: Scorer, policy: Policy, baselines: BaselineBook | None = None
    ) -> None:
        self._scorer = scorer
        self._policy = policy
        self.baselines = baselines or NoBaselines()
        self.alerting = Alerting(policy.rules, scorer.empathy, scorer.bundle_id)

    @property
    def bundle_id(self) -> str:
        """The bundle that scores."""
        return self._scorer.bundle_id

    def encode(self, turns: Collection[Turn]) -> list[Encoding]:
        """Encode turns; it depends on no session's state, so it may be done ahead."""
        return self._scorer.encode(
            [turn.text for turn in turns], [turn.speaker_role for turn in turns]
        )

    def process(self, batch: list[Received], states: dict[str, Versioned]) -> BatchResult:
        """Process a batch; ``states`` holds the known sessions and is updated in place."""
        result = BatchResult()
        admission = self._admit(batch, states)
        places = _Places()
        for index, received in enumerate(batch):
            event = received.event
            match event:
                case ContractError():
                    _set_aside(result, received, event)
                case Turn():
                    encoding = admission.encodings.get(index)
                    self._place_turn(received, event, encoding, states, result, places)
                case SessionEnd():
                    self._place_end(received, event, states, result, places)
                case Outcome() if index in admission.outcomes:
                    result.outcomes.append(event)
                    result.counts["outcome"] += 1
                case Outcome():
                    result.sessions[event.session_id] = states[event.session_id]
                    result.counts["withheld"] += 1
        self._fold(places, result)
        for session_id, versioned in result.sessions.items():
            status = SessionStatus.CLOSED if versioned.state.closed else SessionStatus.OPEN
            points = places.risk_points.get(session_id, [])
            result.session_scores.append(
                session_score(versioned.state, status, points, self._scorer.empathy)
            )
        return result

    def rest(self, states: dict[str, Versioned]) -> BatchResult:
        """Score what is still due in sessions that have gone quiet.

        The sessions' own states are left as they are: should a turn come after all, the window
        goes on and the final scores are written anew, so that it does not matter when, or
        whether, a session was found to be idle.
        """
        result = BatchResult(sessions=dict(states))
        places = _Places()
        copies = {key: unpack(pack(versioned.state)) for key, versioned in states.items()}
        for state in copies.values():
            at = state.last_activity_at or state.ended_at
            if at is not None:
                targets = window.flush(state.window, self._policy.window)
                places.due += _dues(state, targets, at, alerting=False)
        self._fold(places, result)
        for session_id, state in copies.items():
            points = places.risk_points.get(session_id, [])
            result.session_scores.append(
                session_score(state, SessionStatus.IDLE, points, self._scorer.empathy)
            )
        return result

    def tick(self, states: dict[str, Versioned], now: datetime) -> BatchResult:
        """Fire the rules of time that are due by ``now`` in sessions where nothing happens."""
        result = BatchResult()
        for session_id, versioned in states.items():
            state = versioned.state
            if state.wake_at is None or state.wake_at > now:
                continue
            if found := self.alerting.passed(state, now, state.facts):
                result.alerts += found
                result.sessions[session_id] = versioned
                result.session_scores.append(
                    session_score(state, SessionStatus.OPEN, [], self._scorer.empathy)
                )
        return result

    def may_score(self, state: SessionState) -> bool:
        """Whether consent covers the turns of a session as it stands."""
        if state.consent is None:
            return not self._policy.require_consent
        return state.consent

    def _takes(self, outcome: Outcome, state: SessionState) -> bool:
        """Whether consent covers an outcome; one that it did not stays out when read again."""
        key = zlib.crc32(msgspec.json.encode(outcome))
        if key in state.withheld_outcomes:
            return False
        if not self.may_score(state):
            state.withheld_outcomes.append(key)
            del state.withheld_outcomes[:-WITHHELD_OUTCOMES_KEPT]
            return False
        return True

    def _state(self, session_id: str, states: dict[str, Versioned]) -> SessionState:
        if session_id not in states:
            states[session_id] = Versioned(SessionState(session_id, self._scorer.bundle_id))
        return states[session_id].state

    def _admit(self, batch: list[Received], states: dict[str, Versioned]) -> "_Admission":
        """Which turns are new, and what consent allows, in the order of the log."""
        admission = _Admission()
        turns: dict[int, Turn] = {}
        seen: set[tuple[str, int]] = set()
        ended = {session_id for session_id, known in states.items() if known.state.closed}
        for index, received in enumerate(batch):
            event = received.event
            match event:
                case SessionEnd():
                    ended.add(event.session_id)
                case Outcome():
                    if self._takes(event, self._state(event.session_id, states)):
                        admission.outcomes.add(index)
                case Turn() if (event.session_id, event.seq) not in seen:
                    state = self._state(event.session_id, states)
                    placement = window.placement_of(state.window, event.seq, _digest(event))
                    if placement in (Placement.DUPLICATE, Placement.CONFLICT):
                        continue
                    seen.add((event.session_id, event.seq))
                    if event.consent is not None and event.session_id not in ended:
                        state.consent = event.consent
                    if not self.may_score(state):
                        continue
                    if received.encoding is not None:
                        admission.encodings[index] = received.encoding
                    else:
                        turns[index] = event
                case _:
                    pass
        encoded = self.encode(turns.values())
        admission.encodings.update(zip(turns, encoded, strict=True))
        return admission

    def _place_turn(
        self,
        received: Received,
        turn: Turn,
        encoding: Encoding | None,
        states: dict[str, Versioned],
        result: BatchResult,
        places: _Places,
    ) -> None:
        state = self._state(turn.session_id, states)
        encoded = _encoded(turn, encoding)
        placement = window.placement_of(state.window, turn.seq, encoded.digest)
        if placement is Placement.DUPLICATE:
            result.counts["duplicate"] += 1
            return
        if placement is Placement.CONFLICT:
            _set_aside(
                result,
                received,
                ContractError(
                    "conflicting-duplicate", "another turn with this seq was taken before"
                ),
            )
            return
        if state.closed and placement is not Placement.LATE:
            _set_aside(
                result,
                received,
                ContractError("after-end", "the session has ended; its seq is new"),
            )
            return
        late = placement is Placement.LATE
        if late:
            encoded = _encoded(turn, encoding, late=True)
        self._touch(state, turn)
        _, targets = window.push(state.window, encoded, self._policy.window)
        at, closed = encoded.occurred_at, state.closed
        places.due += _dues(state, targets, at, alerting=not closed, ended=closed)
        result.sessions[turn.session_id] = states[turn.session_id]
        states[turn.session_id].partition = received.source.partition
        if encoding is None:
            places.due.append(
                _Due(state, None, at, state.facts, not (late or closed), Cause.UNSEEN)
            )
            state.withheld_turns += 1
            result.counts["withheld"] += 1
        else:
            result.turns.append(StoredTurn(turn, late, received.produced_at))
            result.counts["late" if late else "accepted"] += 1

    def _place_end(
        self,
        received: Received,
        end: SessionEnd,
        states: dict[str, Versioned],
        result: BatchResult,
        places: _Places,
    ) -> None:
        state = self._state(end.session_id, states)
        if state.closed:
            result.counts["duplicate"] += 1
            return
        targets = window.flush(state.window, self._policy.window)
        state.closed, state.ended_at, state.end_reason = True, utc(end.occurred_at), end.reason
        places.due += _dues(state, targets, state.ended_at)
        places.due.append(_Due(state, None, state.ended_at, state.facts, ended=True))
        result.sessions[end.session_id] = states[end.session_id]
        states[end.session_id].partition = received.source.partition
        result.counts["ended"] += 1

    def _fold(self, places: _Places, result: BatchResult) -> None:
        targets = [due.target for due in places.due if due.target is not None]
        scores = iter(self._scorer.score(targets))
        for due in places.due:
            if due.alerting:
                result.alerts += self.alerting.passed(due.state, due.now, due.facts)
            if due.target is None:
                if due.ended:
                    self._assess(due)
                result.alerts += self._close_alerts(due)
                continue
            score = self._turn_score(due.state, due.target, next(scores))
            if _is_first(due.target):
                turn = due.target.turn
                due.state.aggregates.count_turn(turn.role, turn.words, turn.late)
            result.turn_scores.append(self._observe(due, score, places, result))

    def _turn_score(self, state: SessionState, target: Target, heads: HeadScores) -> TurnScore:
        turn = target.turn
        return TurnScore(
            session_id=state.session_id,
            seq=turn.seq,
            stage=target.stage,
            bundle=self._scorer.bundle_id,
            role=turn.role,
            occurred_at=turn.occurred_at,
            late=turn.late,
            truncated=turn.truncated,
            expressed=heads.expressed,
            perceived=heads.perceived,
            client=heads.client,
            confidence=heads.confidence,
            abstained=heads.abstained,
        )

    def _observe(
        self, due: _Due, score: TurnScore, places: _Places, result: BatchResult
    ) -> TurnScore:
        """Add a score to the session; the first score of a counsellor turn moves the risk."""
        state = due.state
        after = self._policy.window.after
        state.aggregates.observe(contribution(score), after, score.late, score.role)
        state.miti = miti.counted(state.miti, score, due.facts.approach, after)
        if self._scorer.empathy is not None and not score.late:
            here = self._scorer.empathy.of(due.facts.domain, due.facts.approach)
            value = turn_value(score, here)
            state.exchanges.observe(score.role, score.seq, value, after, here.weighing)
        if due.target is None or not _is_first(due.target):
            return score
        state.watch.note(score)
        if score.role is Role.COUNSELLOR:
            score = self._with_risk(due, score, places)
        elif due.ended:
            self._assess(due)
        if due.alerting:
            result.alerts += self.alerting.turn(state, score, due.facts)
        return score

    def _assess(self, due: _Due) -> None:
        """Compute the session's risks from what has been scored so far."""
        state, facts = due.state, due.facts
        found = session_empathy(state.exchanges, facts, self._scorer.empathy)
        state.risk = found.risk if found is not None else None
        if models := self._scorer.outcomes:
            summary = state.aggregates.summary()
            state.outcomes = outcome_risks(
                models, summary, facts.domain, facts.approach, ended=due.ended
            )

    def _with_risk(self, due: _Due, score: TurnScore, places: _Places) -> TurnScore:
        state = due.state
        self._assess(due)
        if state.risk is None:
            return score
        state.watch.note_risk(state.risk)
        places.risk_points.setdefault(state.session_id, []).append((score.seq, state.risk))
        return structs.replace(score, low_empathy_risk=state.risk)

    def _close_alerts(self, due: _Due) -> list[Alert]:
        """At the end, or when consent is gone: nobody can tell any more whether a client waits."""
        if not due.alerting:
            return []
        if due.cause is Cause.UNSEEN:
            due.state.watch.forget_waiting()
            due.state.exchanges.forget()
        return self.alerting.close(due.state, due.now, due.facts, due.cause)

    def _touch(self, state: SessionState, turn: Turn) -> None:
        """Session facts; minima and maxima, so that the order of arrival does not matter."""
        at = utc(turn.occurred_at)
        state.started_at = min(state.started_at or at, at)
        state.last_activity_at = max(state.last_activity_at or at, at)
        state.domain = state.domain or (turn.domain.value if turn.domain else None)
        state.team = state.team or turn.team
        if state.approach is None:
            given = turn.approach.value if turn.approach else None
            state.approach = given or self._policy.approaches.of(state.domain, state.team)
        state.lang = state.lang or turn.lang
        pinned = state.baselines
        if state.channel is None and turn.channel is not None:
            state.channel = turn.channel
            found = self.baselines.of_channel(turn.channel)
            state.baselines = pinned = structs.replace(pinned, channel=found)
        if turn.speaker_role is Role.COUNSELLOR and not pinned.counsellor_known:
            found = self.baselines.of_counsellor(turn.speaker_id)
            state.baselines = structs.replace(pinned, counsellor=found, counsellor_known=True)


def _dues(
    state: SessionState,
    targets: list[Target],
    now: datetime,
    alerting: bool = True,
    ended: bool = False,
) -> list[_Due]:
    """What is due, each with the time of the turn that made it so: a final score, of the next one.

    What no turn follows is made due by the event itself, at ``now``.
    """
    facts = state.facts
    due: list[_Due] = []
    for target in reversed(targets):
        if _is_first(target):
            now = target.turn.occurred_at
        due.append(_Due(state, target, now, facts, alerting, ended=ended))
    return due[::-1]


def _is_first(target: Target) -> bool:
    return target.stage is Stage.PROVISIONAL or target.turn.late


def _digest(turn: Turn) -> int:
    return zlib.crc32(f"{turn.speaker_role.value}\n{turn.text}".encode())


def _encoded(turn: Turn, encoding: Encoding | None, late: bool = False) -> EncodedTurn:
    return EncodedTurn(
        seq=turn.seq,
        role=turn.speaker_role,
        occurred_at=utc(turn.occurred_at),
        digest=_digest(turn),
        words=len(turn.text.split()),
        vectors=encoding.vectors if encoding else b"",
        rationales=encoding.rationales if encoding else {},
        truncated=encoding.truncated if encoding else False,
        late=late,
        withheld=encoding is None,
    )


def _set_aside(result: BatchResult, received: Received, error: ContractError) -> None:
    source = received.source
    letter = DeadLetter(
        dead_letter_id=f"{source.topic}:{source.partition}:{source.offset}",
        reason=error.code,
        detail=error.detail,
        topic=source.topic,
        partition=source.partition,
        offset=source.offset,
        size=len(received.raw),
    )
    result.dead_letters.append(SetAside(letter, received.raw))
    result.counts["dead-letter"] += 1
