"""The batch loop: sessions accept the events, one call scores what is due, the scores are added."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from stream_app.contracts import cloudevents, framing
from stream_app.contracts.events import Event, Outcome, Turn, decode
from stream_app.contracts.scores import (
    DeadLetter,
    SessionStatus,
)
from stream_app.core.alerting import Alerting
from stream_app.core.baselines import BaselineBook, NoBaselines
from stream_app.core.batch import BatchResult, SetAside, StoredTurn
from stream_app.core.encodings import Encodings
from stream_app.core.environment import Environment, Policy
from stream_app.core.heads import kept
from stream_app.core.ports import Encoding, Scorer, TraceHeaders
from stream_app.core.session import Fate, Session, Step, ToScore
from stream_app.core.session_state import SessionState, Versioned, pack, unpack
from stream_app.core.shadow import Shadow
from stream_app.core.window import WindowTurn
from stream_app.errors import ContractError

NO_HEADERS: Final[Mapping[str, bytes]] = MappingProxyType({})
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


class Source(Struct, frozen=True):
    """Position of an event in the log."""

    topic: str
    partition: int
    offset: int


class Received(Struct, frozen=True):
    """A decoded record: the event or its error; ``encoding`` if encoded ahead.

    ``appended_at``: by the broker's clock, if known. ``trace``: for messages that follow from it.
    """

    source: Source
    raw: bytes
    event: Event | ContractError
    produced_at: datetime | None = None
    encoding: Encoding | None = None
    appended_at: datetime | None = None
    trace: TraceHeaders = ()


def receive(
    source: Source,
    raw: bytes,
    headers: Mapping[str, bytes] = NO_HEADERS,
    produced_at: datetime | None = None,
    appended_at: datetime | None = None,
) -> Received:
    """Decode a record of the log, framed or not; a CloudEvent's headers must agree with its data.

    ``Received.raw`` has the record's bytes as they came.
    """
    event: Event | ContractError
    try:
        event = decode(framing.unframed(raw))
        if cloudevents.is_cloud_event(headers):
            cloudevents.check(headers, event)
    except ContractError as problem:
        schema_id = framing.schema_id(raw)
        event = problem if schema_id is None else _framed_error(problem, schema_id)
    return Received(source, raw, event, produced_at, appended_at=appended_at)


def _framed_error(problem: ContractError, schema_id: int) -> ContractError:
    return ContractError(problem.code, f"{problem.detail} (framed with schema id {schema_id})")


class Pipeline:
    """Processes batches; has no session state of its own."""

    def __init__(
        self, scorer: Scorer, policy: Policy, baselines: BaselineBook | None = None
    ) -> None:
        self._scorer = scorer
        self.shadow: Shadow | None = None
        self.encodings = Encodings(scorer, policy)
        self.environment = Environment(
            policy,
            scorer.bundle_id,
            scorer.empathy,
            scorer.outcomes,
            Alerting(policy.rules, scorer.empathy, scorer.bundle_id),
            baselines or NoBaselines(),
            kept(scorer.heads),
        )

    @property
    def bundle_id(self) -> str:
        """The bundle that scores turns."""
        return self.environment.bundle_id

    def process(self, batch: list[Received], states: dict[str, Versioned]) -> BatchResult:
        """Process a batch; ``states`` holds the known sessions and is updated in place."""
        result = BatchResult()
        sessions: dict[str, Session] = {}
        steps: list[tuple[Session, Step]] = []
        turns: list[tuple[Turn, WindowTurn, Encoding | None]] = []
        for received in batch:
            event = received.event
            if isinstance(event, ContractError):
                _set_aside(result, received, event)
                continue
            session = sessions.get(event.session_id)
            if session is None:
                session = sessions[event.session_id] = self._session(event.session_id, states)
            try:
                accepted = session.accept(event)
            except ContractError as problem:
                _set_aside(result, received, problem)
                continue
            steps += [(session, step) for step in accepted.steps]
            result.counts[accepted.fate.value] += 1
            if accepted.changes:
                result.sessions[event.session_id] = versioned = states[event.session_id]
                versioned.partition = received.source.partition
            if accepted.consent is not None:
                result.consents.append(accepted.consent)
            if isinstance(event, Turn) and accepted.turn is not None:
                turns.append((event, accepted.turn, received.encoding))
                stored = StoredTurn(
                    event,
                    accepted.turn.late,
                    received.produced_at,
                    accepted.from_first_counsellor,
                )
                result.turns.append(stored)
            elif isinstance(event, Outcome) and accepted.fate is Fate.OUTCOME:
                result.outcomes.append(event)
        self.encodings.attach(turns)
        if self.shadow is not None:
            self.shadow.encode([(turn, kept) for turn, kept, _ in turns])
        self._carry_out(steps, result)
        result.session_scores = [sessions[session_id].score() for session_id in result.sessions]
        return result

    def flush_idle(self, states: dict[str, Versioned]) -> BatchResult:
        """Score the turns still due in idle sessions, on copies of their states.

        The states do not change, so it does not matter when, or whether, a session is flushed: if
        another turn arrives, the final scores are rewritten.
        """
        result = BatchResult(sessions=dict(states))
        copies = [
            Session(unpack(pack(versioned.state)), self.environment)
            for versioned in states.values()
        ]
        self._carry_out([(copy, step) for copy in copies for step in copy.flush_idle()], result)
        result.session_scores = [copy.score(SessionStatus.IDLE) for copy in copies]
        return result

    def fire_due(self, states: dict[str, Versioned], now: datetime) -> BatchResult:
        """Fire the timed rules that are due by ``now`` in sessions without new events."""
        result = BatchResult()
        for session_id, versioned in states.items():
            session = Session(versioned.state, self.environment)
            if alerts := session.fire_due(now):
                result.alerts += alerts
                result.sessions[session_id] = versioned
                result.session_scores.append(session.score())
        return result

    def _session(self, session_id: str, states: dict[str, Versioned]) -> Session:
        if session_id not in states:
            states[session_id] = Versioned(SessionState(session_id, self.bundle_id))
        return Session(states[session_id].state, self.environment)

    def _carry_out(self, steps: list[tuple[Session, Step]], result: BatchResult) -> None:
        """Score all requests in one call and add the scores in log order."""
        due = [
            (session.state.session_id, step.request)
            for session, step in steps
            if isinstance(step, ToScore)
        ]
        scores = iter(self._scorer.score([request for _, request in due]))
        if self.shadow is not None:
            result.shadow_scores += self.shadow.score(due)
        for session, step in steps:
            if isinstance(step, ToScore):
                score, alerts = session.add(step, next(scores))
                result.turn_scores.append(score)
            else:
                alerts = session.end_alerts(step)
            result.alerts += alerts


def _set_aside(result: BatchResult, received: Received, error: ContractError) -> None:
    source = received.source
    letter = DeadLetter(
        dead_letter_id=_letter_id(received),
        reason=error.code,
        detail=error.detail,
        topic=source.topic,
        partition=source.partition,
        offset=source.offset,
        size=len(received.raw),
    )
    result.dead_letters.append(SetAside(letter, received.raw))
    result.counts["dead-letter"] += 1


def _letter_id(received: Received) -> str:
    """The record's position and time: offsets begin again when a topic is recreated."""
    source = received.source
    place = f"{source.topic}:{source.partition}:{source.offset}"
    if received.produced_at is None:
        return place
    return f"{place}:{(received.produced_at - _EPOCH) // timedelta(milliseconds=1)}"
