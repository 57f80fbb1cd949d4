"""The batch loop: sessions accept the events, one call scores what is due, the scores are added."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from types import MappingProxyType
from typing import Final, TypeGuard

from msgspec import Struct

from stream_app.contracts import cloudevents, framing
from stream_app.contracts.events import (
    CLOSES_GAP,
    Event,
    Outcome,
    Questionnaire,
    Revision,
    Turn,
    TurnDelete,
    TurnEdit,
    TurnPlace,
    decode,
    place_of_refused,
)
from stream_app.contracts.scores import Alert, DeadLetter, SessionStatus
from stream_app.core.measures.baselines import BaselineBook, NoBaselines
from stream_app.core.measures.heads import kept
from stream_app.core.measures.window import ScoringRequest
from stream_app.core.pipeline import revision
from stream_app.core.pipeline.encodings import Encodings, ToEncode
from stream_app.core.pipeline.scoring_bundles import BundlesInForce, ScoringBundle
from stream_app.core.pipeline.session_bundles import assign, at_event, leave_removed, ranges_of
from stream_app.core.pipeline.shadow import Shadow
from stream_app.core.session.alerting import Alerting, end_with_bundle
from stream_app.core.session.batch import BatchResult, Left, SetAside, StoredTurn
from stream_app.core.session.environment import Environment, Policy
from stream_app.core.session.past import NO_PAST, PastSession
from stream_app.core.session.ports import Encoding, Scorer, TraceHeaders
from stream_app.core.session.session import AFTER_END, Accepted, Fate, Session, Step, ToScore
from stream_app.core.session.session_state import SessionState, Versioned, pack, unpack
from stream_app.core.session.turn_languages import (
    UNKNOWN,
    LanguageReader,
    NoLanguageReader,
    SpokenIn,
    spoken_in,
)
from stream_app.errors import ContractError

NO_HEADERS: Final[Mapping[str, bytes]] = MappingProxyType({})
NO_SESSIONS: Final[Mapping[str, PastSession]] = MappingProxyType({})
UNHEARD: Final = "unheard"
"""Counts turns after the end of a session of which no turn was scored: nobody watches it."""
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


class Source(Struct, frozen=True):
    """Position of an event in the log."""

    topic: str
    partition: int
    offset: int


class Received(Struct, frozen=True):
    """A decoded record: the event or its error; ``encoding`` if encoded ahead.

    ``appended_at``: by the broker's clock, if known. ``trace``: for messages that follow from it.
    ``done_to``: the offset up to which all events of the partition are stored once this one is;
    None if it came after all others. ``gap``: whether a refused turn gives up its place.
    """

    source: Source
    raw: bytes
    event: Event | ContractError
    produced_at: datetime | None = None
    encoding: Encoding | None = None
    appended_at: datetime | None = None
    trace: TraceHeaders = ()
    done_to: int | None = None
    gap: bool = True

    @property
    def refused(self) -> TurnPlace | None:
        """The place of a turn that was refused, and for which nobody is to wait."""
        error = self.event
        if not self.gap or not isinstance(error, ContractError) or error.code not in CLOSES_GAP:
            return None
        return place_of_refused(framing.unframed(self.raw))

    @property
    def session_id(self) -> str | None:
        """The session that the event changes, or may change; None if it is not legible."""
        if not isinstance(self.event, ContractError):
            return self.event.session_id
        place = self.refused
        return None if place is None else place.session_id

    @property
    def position(self) -> int:
        """The partition's position once this event is stored."""
        return self.source.offset + 1 if self.done_to is None else self.done_to


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
        if cloudevents.is_structured(headers):
            event = cloudevents.NOT_BINARY
    return Received(source, raw, event, produced_at, appended_at=appended_at)


def _framed_error(problem: ContractError, schema_id: int) -> ContractError:
    return ContractError(problem.code, f"{problem.detail} (framed with schema id {schema_id})")


def environment_of(
    scorer: Scorer, policy: Policy, baselines: BaselineBook | None = None
) -> Environment:
    """State that all sessions of a scorer's bundle share."""
    return Environment(
        policy,
        scorer.bundle_id,
        scorer.empathy,
        scorer.outcomes,
        Alerting(policy.rules, scorer.empathy, scorer.bundle_id),
        baselines or NoBaselines(),
        kept(scorer.heads),
    )


class Pipeline:
    """Processes batches; has no session state of its own."""

    def __init__(
        self, scorer: Scorer, policy: Policy, baselines: BaselineBook | None = None
    ) -> None:
        self.environment = environment_of(scorer, policy, baselines)
        self.bundles = BundlesInForce(ScoringBundle(scorer, self.environment))
        self.shadow: Shadow | None = None
        self.encodings = Encodings(scorer, policy, self.bundles)
        self.languages: LanguageReader = NoLanguageReader()

    @property
    def bundle_id(self) -> str:
        """The default bundle, which is in the key of every session's state."""
        return self.environment.bundle_id

    def adopt(self, bundles: BundlesInForce) -> None:
        """Replace the bundles in force, between batches; the default one stays."""
        self.bundles = self.encodings.bundles = bundles

    def new_states(self, session_ids: Iterable[str], bundle: ScoringBundle) -> dict[str, Versioned]:
        """States of new sessions that this bundle scores, whatever the routes say."""
        chosen = None if bundle is self.bundles.default else bundle.choice
        return {
            key: Versioned(SessionState(key, self.bundle_id, chosen=chosen)) for key in session_ids
        }

    def process(
        self,
        batch: list[Received],
        states: dict[str, Versioned],
        past: Mapping[str, PastSession] = NO_SESSIONS,
    ) -> BatchResult:
        """Process a batch; ``states`` holds the known sessions and is updated in place.

        An edit or a deletion is a batch by itself (``parts``), with what is stored of its session
        in ``past``.

        Raises:
            ValueError: the batch has an edit or a deletion, and other events.
        """
        if len(batch) > 1 and any(is_revision(received.event) for received in batch):
            message = "an edit or a deletion is a batch by itself"
            raise ValueError(message)
        result = BatchResult()
        bundles = self.bundles
        sessions: dict[str, Session] = {}
        steps: list[tuple[Session, ScoringBundle, Step]] = []
        turns: list[ToEncode] = []
        for received in batch:
            event = received.event
            if isinstance(event, ContractError):
                _set_aside(result, received, event)
                if (place := received.refused) is not None:
                    session = self._session(place.session_id, states, bundles, result, sessions)
                    steps += self._pass_over(place, session, received, states, result)
                continue
            session = self._session(event.session_id, states, bundles, result, sessions)
            if isinstance(event, TurnEdit | TurnDelete):
                found = past.get(event.session_id, NO_PAST)
                steps += self._revise(received, event, session, states, sessions, found, result)
                continue
            language = self._language(session.state, event)
            bundle, unscored = at_event(session.state, event, bundles, language.tag)
            session.move_to(bundle.environment)
            try:
                accepted = session.accept(event, unscored, language)
            except ContractError as problem:
                _refuse(result, received, problem, session)
                if isinstance(event, Turn) and problem.code in CLOSES_GAP:
                    place = TurnPlace(event.session_id, event.seq)
                    steps += self._pass_over(place, session, received, states, result)
                continue
            steps += [(session, bundle, step) for step in accepted.steps]
            result.counts[accepted.fate.value] += 1
            if accepted.changes:
                result.sessions[event.session_id] = versioned = states[event.session_id]
                versioned.partition = received.source.partition
                scored = unscored is None or accepted.is_scored
                if isinstance(event, Turn) and scored and not event.is_aside:
                    assign(session.state, bundle, bundles)
            turns += _kept(result, received, event, accepted, bundle)
        self._encode([item for item in turns if not item.kept.withheld])
        self._carry_out(steps, result)
        result.session_scores = [
            sessions[session_id].score()
            for session_id in result.sessions
            if not sessions[session_id].is_unheard
        ]
        return result

    def flush_idle(self, states: dict[str, Versioned]) -> BatchResult:
        """Score the turns still due in idle sessions, on copies of their states.

        The states do not change, so it does not matter when, or whether, a session is flushed: if
        another turn arrives, the final scores are rewritten. Only alerts of a bundle that is no
        longer in force end, because nothing else may ever end them.
        """
        result = BatchResult(sessions=dict(states))
        copies: list[tuple[Session, ScoringBundle]] = []
        for versioned in states.values():
            state = versioned.state
            bundle = self.bundles.of(state)
            if bundle is not None:
                copies.append((Session(unpack(pack(state)), bundle.environment), bundle))
            elif state.chosen is not None:  # it moves to another bundle with its next event
                result.alerts += end_with_bundle(state, state.chosen.bundle)
                result.left.append(Left(state.session_id, state.chosen.bundle))
        self._carry_out(
            [(copy, bundle, step) for copy, bundle in copies for step in copy.flush_idle()], result
        )
        result.session_scores = [
            copy.score(SessionStatus.IDLE) for copy, _ in copies if not copy.is_unheard
        ]
        return result

    def fire_due(self, states: dict[str, Versioned], now: datetime) -> BatchResult:
        """Fire the timed rules that are due by ``now`` in sessions without new events."""
        result = BatchResult()
        for session_id, versioned in states.items():
            alerts = _leave_removed(versioned.state, self.bundles, result) or []
            bundle = self.bundles.of(versioned.state) or self.bundles.default
            session = Session(versioned.state, bundle.environment)
            alerts += session.fire_due(now)
            if alerts:
                result.alerts += alerts
                result.sessions[session_id] = versioned
                result.session_scores.append(session.score())
        return result

    def _revise(
        self,
        received: Received,
        event: Revision,
        session: Session,
        states: dict[str, Versioned],
        sessions: dict[str, Session],
        past: PastSession,
        result: BatchResult,
    ) -> list[tuple[Session, ScoringBundle, Step]]:
        """Carry out an edit or a deletion; return what becomes due without the turn."""
        bundle = self.bundles.of(session.state) or self.bundles.default
        try:
            found = revision.accept(session.state, event, past, bundle, self.encodings.attach)
        except ContractError as problem:
            _set_aside(result, received, problem)
            return []
        result.counts[found.fate.value] += 1
        result.revised = found.revised
        versioned = states[event.session_id]
        steps: list[Step] = []
        if found.fate is Fate.EARLY_DELETE and isinstance(event, TurnDelete):
            session.move_to(bundle.environment)
            steps = session.delete_ahead(event)
        elif found.session is not None:
            sessions[event.session_id] = found.session
            versioned.state = found.session.state
            versioned.slots = {}  # all is written, nothing is kept
            result.turn_scores += found.scores
            result.alerts += found.alerts
        else:
            return []
        result.sessions[event.session_id] = versioned
        versioned.partition = received.source.partition
        return [(session, bundle, step) for step in steps]

    def _language(self, state: SessionState, event: Event) -> SpokenIn:
        """The language of a turn; no text is read without consent."""
        if not isinstance(event, Turn) or event.is_aside:
            return UNKNOWN
        covers = self.environment.policy.covers
        read = covers(event.consent) or covers(state.consent)
        shares = self.languages.shares(event.text) if read else {}
        words = len(event.text.split())
        ranges = ranges_of(state, self.bundles)
        return spoken_in(shares, words, event.lang, state.languages, ranges)

    def _pass_over(
        self,
        place: TurnPlace,
        session: Session,
        received: Received,
        states: dict[str, Versioned],
        result: BatchResult,
    ) -> list[tuple[Session, ScoringBundle, Step]]:
        """Give up the gap of a refused turn, and return what becomes due without it."""
        bundle = self.bundles.of(session.state) or self.bundles.default
        session.move_to(bundle.environment)
        steps = session.pass_over(place.seq)
        if steps is None:
            return []
        result.sessions[place.session_id] = versioned = states[place.session_id]
        versioned.partition = received.source.partition
        return [(session, bundle, step) for step in steps]

    def _session(
        self,
        session_id: str,
        states: dict[str, Versioned],
        bundles: BundlesInForce,
        result: BatchResult,
        sessions: dict[str, Session],
    ) -> Session:
        """The session of this batch, from its state or new."""
        if session_id in sessions:
            return sessions[session_id]
        if session_id not in states:
            new = SessionState(session_id, self.bundle_id, undecided=True)
            states[session_id] = Versioned(new)
        versioned = states[session_id]
        alerts = _leave_removed(versioned.state, bundles, result)
        if alerts is not None:
            result.alerts += alerts
            result.sessions[session_id] = versioned
        sessions[session_id] = session = Session(versioned.state, self.environment)
        return session

    def _encode(self, turns: Sequence[ToEncode]) -> None:
        self.encodings.attach(turns)
        if self.shadow is not None:
            own = [item for item in turns if item.bundle is self.bundles.default]
            self.shadow.encode([(item.turn, item.kept) for item in own])

    def _carry_out(
        self, steps: list[tuple[Session, ScoringBundle, Step]], result: BatchResult
    ) -> None:
        """Score the requests with one call for each bundle, and add the scores in log order."""
        requests: dict[ScoringBundle, list[ScoringRequest]] = {}
        for _, bundle, step in steps:
            if isinstance(step, ToScore):
                requests.setdefault(bundle, []).append(step.request)
        scores = {bundle: iter(bundle.scorer.score(of)) for bundle, of in requests.items()}
        if self.shadow is not None:
            result.shadow_scores += self.shadow.score(
                [
                    (session.state.session_id, step.request)
                    for session, bundle, step in steps
                    if isinstance(step, ToScore) and bundle is self.bundles.default
                ]
            )
        for session, bundle, step in steps:
            if isinstance(step, ToScore):
                score, alerts = session.add(step, next(scores[bundle]))
                result.turn_scores.append(score)
            else:
                alerts = session.end_alerts(step)
            result.alerts += alerts


def is_revision(event: Event | ContractError) -> TypeGuard[Revision]:
    """Whether an event edits or deletes a turn."""
    return isinstance(event, TurnEdit | TurnDelete)


def parts(batch: Sequence[Received]) -> Iterator[list[Received]]:
    """The batch in parts, so that each edit and each deletion is one by itself."""
    for alone, some in groupby(batch, lambda one: is_revision(one.event)):
        if alone:
            yield from ([received] for received in some)
        else:
            yield list(some)


def _kept(
    result: BatchResult,
    received: Received,
    event: Event,
    accepted: Accepted,
    bundle: ScoringBundle,
) -> list[ToEncode]:
    """Note what an accepted event leaves to be stored; return the turn to be encoded."""
    if accepted.consent is not None:
        result.consents.append(accepted.consent)
    if isinstance(event, Turn) and accepted.turn is not None:
        stored = StoredTurn(
            event,
            accepted.turn.late,
            received.produced_at,
            accepted.from_first_counsellor,
            accepted.unscored,
            accepted.language,
        )
        result.turns.append(stored)
        return [ToEncode(event, accepted.turn, received.encoding, bundle)]
    if isinstance(event, Outcome) and accepted.fate is Fate.OUTCOME:
        result.outcomes.append(event)
    if isinstance(event, Questionnaire) and accepted.fate is Fate.OUTCOME:
        result.questionnaires.append(event)
    return []


def _leave_removed(
    state: SessionState, bundles: BundlesInForce, result: BatchResult
) -> list[Alert] | None:
    """See ``session_bundles.leave_removed``; also notes what the session has left."""
    chosen = state.chosen
    alerts = leave_removed(state, bundles)
    if alerts is not None and chosen is not None:
        result.left.append(Left(state.session_id, chosen.bundle))
    return alerts


def _refuse(
    result: BatchResult, received: Received, problem: ContractError, session: Session
) -> None:
    _set_aside(result, received, problem)
    if problem.code == AFTER_END and not session.has_scored_turn:
        result.counts[UNHEARD] += 1


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
