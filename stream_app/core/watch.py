"""What the rules need of a session beyond its aggregates; small, and moved by scored turns alone.

Nothing here depends on when a turn arrived: it is moved in the order in which turns are scored.
"""

from datetime import datetime
from typing import Final

from msgspec import Struct, field

from stream_app.contracts.events import Role
from stream_app.contracts.scores import TurnScore
from stream_app.core.baselines import Pinned

STEP: Final = 3
"""Counsellor turns over which a rise of the risk is told."""
DISTRESS: Final = "distress"


class Facts(Struct, frozen=True):
    """What was known of a session as a whole when an event came; no scores."""

    domain: str | None = None
    channel: str | None = None
    team: str | None = None
    baselines: Pinned = Pinned()
    approach: str | None = None


class Watch(Struct, omit_defaults=True):
    """Who spoke last and when, in event time; the latest risks.

    ``waiting_since``: the first client turn that no counsellor turn has followed yet.
    ``distress``: the highest probability among those turns. ``answered_after``: seconds that the
    latest counsellor turn let the client wait.
    """

    opened_at: datetime | None = None
    clock: datetime | None = None
    last_role: Role | None = None
    last_seq: int | None = None
    waiting_since: datetime | None = None
    distress: float | None = None
    answered_after: float | None = None
    risks: list[float] = field(default_factory=list)

    def reach(self, moment: datetime) -> datetime:
        """Move the clock on to this time, never back; returns where it stands."""
        self.clock = max(self.clock or moment, moment)
        return self.clock

    def note(self, score: TurnScore) -> None:
        """Take a turn that was scored for the first time; a late one has no place any more."""
        at = self.reach(score.occurred_at)
        self.opened_at = self.opened_at or at
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

    def note_risk(self, risk: float) -> None:
        """Remember the risk after a counsellor turn."""
        self.risks.append(risk)
        del self.risks[: -STEP - 1]

    def forget_waiting(self) -> None:
        """Forget who is waiting, as the next turns are withheld."""
        self.last_role = self.waiting_since = self.distress = self.answered_after = None
