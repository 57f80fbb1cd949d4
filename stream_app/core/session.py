"""The state of one session, and the steps that one event makes of it.

State never holds text: a turn is its vectors, its role and candidate rationale offsets.
"""

from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct, field

from stream_app.contracts.scores import SessionScore, SessionStatus
from stream_app.core.aggregates import Aggregates
from stream_app.core.alerts import AlertStatus
from stream_app.core.baselines import Pinned
from stream_app.core.empathy import EmpathyModel, session_empathy
from stream_app.core.exchanges import Exchanges
from stream_app.core.miti import MitiCounts, miti_summary
from stream_app.core.watch import Facts, Watch
from stream_app.core.window import WindowState

EARLIER_RULE: Final = "low-empathy-risk"


class SessionState(Struct):
    """All that is needed to go on with a session; stored in its row as MessagePack.

    ``alerts``: by rule, those that have begun at least once. ``alert``: of the one rule that an
    earlier release had; ``unpack`` moves it to its name. ``slots``: of a state whose turns are
    stored apart, where they lie (see ``store.windows``); empty in memory.
    """

    session_id: str
    bundle: str
    closed: bool = False
    consent: bool | None = None
    domain: str | None = None
    approach: str | None = None
    channel: str | None = None
    team: str | None = None
    lang: str | None = None
    started_at: datetime | None = None
    last_activity_at: datetime | None = None
    ended_at: datetime | None = None
    end_reason: str | None = None
    withheld_turns: int = 0
    withheld_outcomes: list[int] = field(default_factory=list)
    window: WindowState = field(default_factory=WindowState)
    aggregates: Aggregates = field(default_factory=Aggregates)
    exchanges: Exchanges = field(default_factory=Exchanges)
    watch: Watch = field(default_factory=Watch)
    alerts: dict[str, AlertStatus] = field(default_factory=dict)
    alert: AlertStatus | None = None
    baselines: Pinned = Pinned()
    risk: float | None = None
    outcomes: dict[str, float] = field(default_factory=dict)
    miti: MitiCounts | None = None
    slots: dict[int, int] = field(default_factory=dict)

    @property
    def facts(self) -> Facts:
        """What is known of the session as a whole by now."""
        return Facts(self.domain, self.channel, self.team, self.baselines, self.approach)

    @property
    def wake_at(self) -> datetime | None:
        """When the next rule of time is due, in event time; None while none is.

        None also while turns wait for one that is missing: it may have been the answer.
        """
        if self.closed or self.window.waiting:
            return None
        due = [status.due_at for status in self.alerts.values() if status.due_at is not None]
        return min(due, default=None)


class Versioned(Struct):
    """A state with the version of the row it came from (0 = not stored yet).

    ``partition``: where the session's events come from, for whoever looks after idle sessions.
    ``seen_at``: when its newest event was appended, by a clock that no producer sets.
    ``slots``: where the turns of its window lie, by seq. ``speakers``: of whom there are rows, as
    far as is known.
    """

    state: SessionState
    version: int = 0
    partition: int = 0
    slots: dict[int, int] = field(default_factory=dict)
    speakers: set[tuple[str, str]] = field(default_factory=set)
    seen_at: datetime | None = None


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(SessionState)


def pack(state: SessionState) -> bytes:
    """The state as bytes."""
    return _encoder.encode(state)


def unpack(raw: bytes) -> SessionState:
    """The state from bytes; raises ``msgspec.ValidationError`` on another layout."""
    state = _decoder.decode(raw)
    if state.alert is not None:
        if state.alert.episode:
            state.alerts.setdefault(EARLIER_RULE, state.alert)
        state.alert = None
    return state


def session_score(
    state: SessionState,
    status: SessionStatus,
    risk_by_turn: list[tuple[int, float]],
    model: EmpathyModel | None,
) -> SessionScore:
    """The aggregates of a session as a message."""
    figures = state.aggregates.figures()
    found = session_empathy(state.exchanges, state.facts, model)
    return SessionScore(
        session_id=state.session_id,
        bundle=state.bundle,
        status=status,
        started_at=state.started_at,
        last_activity_at=state.last_activity_at,
        turns=state.aggregates.turns,
        counsellor_turns=figures.counsellor_turns,
        late_turns=state.aggregates.late_turns,
        withheld_turns=state.withheld_turns,
        low_empathy_risk=state.risk,
        empathy_index=found.index if found else None,
        empathy_interval=(found.low, found.high) if found else None,
        empathy_percentile=found.percentile if found else None,
        answered_share=found.answered_share if found else None,
        missed_opportunities=found.missed if found else [],
        outcome_risks=state.outcomes,
        risk_by_turn=risk_by_turn,
        mechanisms=figures.mechanisms,
        empathy_total_mean=figures.empathy_total_mean,
        talk_share=figures.talk_share,
        reflection_to_question=figures.reflection_to_question,
        complex_reflection_share=figures.complex_reflection_share,
        open_question_share=figures.open_question_share,
        miti=miti_summary(state.miti),
    )
