"""Replays a stored session under other rules: the code of live sessions, with its stored scores.

No text is needed: a turn's role, time and number of words, and the scores of both stages. The turns
are accepted in their order, late ones where they arrived. The replay of a session under the rules
that were in force gives the alerts that it had, except that an answer in the words of an earlier
one counts in full, because words are not read (``empathy.turn_value``).
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from stream_app.contracts.events import Approach, Domain, Role, SessionEnd, Turn, WireRole
from stream_app.contracts.scores import Alert, Stage
from stream_app.core.measures.baselines import Baseline, Pinned
from stream_app.core.measures.empathy import EmpathyModel
from stream_app.core.measures.heads import Head, kept
from stream_app.core.measures.outcomes import OutcomeModel
from stream_app.core.session.alerting import Alerting
from stream_app.core.session.environment import Environment, Policy
from stream_app.core.session.past import by_arrival
from stream_app.core.session.ports import HeadScores
from stream_app.core.session.session import Fate, Session, Step, ToScore
from stream_app.core.session.session_state import SessionState
from stream_app.errors import ContractError, RapportError


class NotReproducible(RapportError):
    """A session cannot be replayed, because too little of it is stored."""


class RecordedTurn(Struct, frozen=True):
    """A stored turn with its intents; ``arrived_at`` orders late turns among the others."""

    seq: int
    role: Role
    occurred_at: datetime
    words: int
    late: bool
    arrived_at: datetime
    intents: dict[str, float] = {}
    speaker: str = ""


class RecordedSession(Struct, frozen=True):
    """A stored session; ``ended_at`` None: it was only idle. ``turns`` by seq."""

    session_id: str
    bundle: str
    domain: str | None
    channel: str | None
    team: str | None
    approach: str | None
    baselines: Pinned
    ended_at: datetime | None
    turns: Sequence[RecordedTurn]
    scores: Mapping[tuple[int, Stage], HeadScores]


class BundleModels(Struct, frozen=True):
    """The parts of a bundle that sessions use beside its scorer; ``window`` before and after."""

    empathy: EmpathyModel | None
    outcomes: Mapping[str, OutcomeModel]
    heads: Sequence[Head]
    window: tuple[int, int]


def replay(
    recorded: RecordedSession, policy: Policy, models: BundleModels, idle_after: timedelta
) -> tuple[list[Alert], Mapping[str, int]]:
    """The alert transitions of a session under ``policy.rules``, in their order.

    Also how often expressions, by their source, failed to evaluate. ``policy`` must not require
    consent, which stored turns had. Rules of an idle session fire that were due within
    ``idle_after``, as a worker's timers do.

    Raises:
        NotReproducible: scores are missing, or a turn's place is not the stored one.
    """
    session, alerts, failures = rebuild(recorded, policy, models)
    if recorded.ended_at is None and session.state.last_activity_at is not None:
        alerts += session.fire_due(session.state.last_activity_at + idle_after)
    return alerts, failures


def rebuild(
    recorded: RecordedSession, policy: Policy, models: BundleModels
) -> tuple[Session, list[Alert], Mapping[str, int]]:
    """The session as it was at its end, its alerts, and the failures of expressions.

    Raises:
        NotReproducible: scores are missing, or a turn's place is not the stored one.
    """
    alerting = Alerting(policy.rules, models.empathy, recorded.bundle)
    environment = Environment(
        policy,
        recorded.bundle,
        models.empathy,
        models.outcomes,
        alerting,
        _Pinned(recorded.baselines),
        kept(models.heads),
    )
    session = Session(SessionState(recorded.session_id, recorded.bundle), environment)
    alerts: list[Alert] = []
    for turn in by_arrival(recorded.turns):
        if turn.late:  # its gap was given up, perhaps because it was refused at first
            alerts += _carried_out(session, session.pass_over(turn.seq) or (), recorded)
        try:
            accepted = session.accept(_event(recorded, turn))
        except ContractError as problem:
            raise NotReproducible(problem.detail) from None
        if accepted.fate is not _expected(turn):
            raise NotReproducible("the order of the turns is not known")
        if accepted.turn is not None and accepted.turn.intents is not None:
            accepted.turn.intents = turn.intents
        alerts += _carried_out(session, accepted.steps, recorded)
    if recorded.ended_at is not None:
        end = SessionEnd(session_id=recorded.session_id, occurred_at=recorded.ended_at)
        ended = session.end(end)
        alerts += _carried_out(session, ended.steps, recorded)
    return session, alerts, alerting.failures


class _Pinned:
    """The baselines that the session had."""

    def __init__(self, pinned: Pinned) -> None:
        self._pinned = pinned

    def of_channel(self, channel: str) -> Baseline | None:  # noqa: ARG002  # the port's name
        return self._pinned.channel

    def of_counsellor(self, speaker_id: str) -> Baseline | None:  # noqa: ARG002  # the port's name
        return self._pinned.counsellor


def _expected(turn: RecordedTurn) -> Fate:
    if not turn.role.is_scored:
        return Fate.ASIDE
    return Fate.LATE if turn.late else Fate.ACCEPTED


def _event(recorded: RecordedSession, turn: RecordedTurn) -> Turn:
    return Turn(
        session_id=recorded.session_id,
        seq=turn.seq,
        speaker_id=turn.speaker or turn.role.value,
        role=WireRole(turn.role.value),
        text=" ".join([str(turn.seq)] * turn.words),
        occurred_at=turn.occurred_at,
        domain=Domain(recorded.domain) if recorded.domain else None,
        channel=recorded.channel,
        team=recorded.team,
        approach=Approach(recorded.approach) if recorded.approach else None,
    )


def _carried_out(
    session: Session, steps: Sequence[Step], recorded: RecordedSession
) -> Iterator[Alert]:
    for step in steps:
        if not isinstance(step, ToScore):
            yield from session.end_alerts(step)
            continue
        seq, stage = step.request.turn.seq, step.request.stage
        scores = recorded.scores.get((seq, stage))
        if scores is None:
            raise NotReproducible(f"turn {seq} has no {stage.value} score")
        yield from session.add(step, scores)[1]
