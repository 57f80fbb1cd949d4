"""Per-session inputs of the rules beyond the aggregates, updated only by scored turns.

Nothing here depends on arrival times: updates follow the order in which turns are scored.
"""

from datetime import datetime
from typing import Final

from msgspec import Struct, field

from stream_app.contracts.events import Role
from stream_app.contracts.scores import TurnScore
from stream_app.core.measures.baselines import Pinned
from stream_app.core.measures.crisis import CRISIS, THRESHOLD

STEP: Final = 3
"""Counsellor turns between the two risks of ``risk_rise``."""
DISTRESS: Final = "distress"


class Facts(Struct, frozen=True):
    """Facts about a session as a whole at an event; no scores."""

    domain: str | None = None
    channel: str | None = None
    team: str | None = None
    baselines: Pinned = Pinned()
    approach: str | None = None


class Watch(Struct, array_like=True):
    """The last speaker and event times; the latest risks.

    ``waiting_since``: time of the first client turn without a following counsellor turn.
    ``distress``: the highest probability among those turns. ``answered_after``: the client's
    waiting time before the latest counsellor turn, in seconds. ``crisis``: value of the latest turn
    scored, late or not, if it is the client's. ``since_crisis``: number of client turns after the
    latest one with crisis language. ``intents``: of the latest turn scored, late or not;
    ``intent_turns``: number of turns so far, by intent.
    """

    opened_at: datetime | None = None
    clock: datetime | None = None
    last_role: Role | None = None
    last_seq: int | None = None
    waiting_since: datetime | None = None
    distress: float | None = None
    answered_after: float | None = None
    risks: list[float] = field(default_factory=list)
    crisis: float | None = None
    since_crisis: int | None = None
    intents: dict[str, float] = field(default_factory=dict)
    intent_turns: dict[str, int] = field(default_factory=dict)

    def reach(self, moment: datetime) -> datetime:
        """Advance the clock to this time, never back; return its value."""
        self.clock = max(self.clock or moment, moment)
        return self.clock

    def note(self, score: TurnScore) -> None:
        """Update with a newly scored turn; late ones count for crisis language and intents."""
        at = self.reach(score.occurred_at)
        self.opened_at = self.opened_at or at
        self._note_crisis(score)
        self._note_intents(score)
        if score.late:
            return
        self.last_role, self.last_seq = score.role, score.seq
        if score.role is Role.CLIENT:
            self.waiting_since = self.waiting_since or at
            found = score.client.get(DISTRESS, {}).get("yes")
            if found is not None:
                self.distress = max(self.distress or 0.0, found)
            return
        since, self.waiting_since, self.distress = self.waiting_since, None, None
        self.answered_after = (at - since).total_seconds() if since is not None else None

    def _note_crisis(self, score: TurnScore) -> None:
        self.crisis = score.client.get(CRISIS, {}).get("yes")
        if score.role is not Role.CLIENT:
            return
        if self.crisis is not None and self.crisis >= THRESHOLD:
            self.since_crisis = 0
        elif self.since_crisis is not None:
            self.since_crisis += 1

    def _note_intents(self, score: TurnScore) -> None:
        self.intents = score.intents
        for name in score.intents:
            self.intent_turns[name] = self.intent_turns.get(name, 0) + 1

    def note_risk(self, risk: float) -> None:
        """Store the risk after a counsellor turn."""
        self.risks.append(risk)
        del self.risks[: -STEP - 1]

    def forget_waiting(self) -> None:
        """Reset what is known of the latest turns, because the next ones are withheld."""
        self.last_role = self.waiting_since = self.distress = self.answered_after = None
        self.crisis = self.since_crisis = None
        self.intents = {}
