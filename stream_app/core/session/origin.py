"""Where a session comes from: its team, domain and channel, which no later turn may contradict.

They decide who may read it. A turn that states another one belongs to another session, whose id
was taken by mistake or on purpose.
"""

from datetime import datetime
from typing import Final

from msgspec import Struct

from stream_app.contracts.events import Event, Turn
from stream_app.core.session.session_state import SessionState
from stream_app.errors import ContractError

NAMES: Final = ("team", "domain", "channel")
CONTRADICTS: Final = "contradicts-session"


class Origin(Struct, frozen=True):
    """The origin of a session with a turn; ``started_at``: of its first one, if it is stored."""

    team: str | None = None
    domain: str | None = None
    channel: str | None = None
    started_at: datetime | None = None

    def with_turn(self, turn: Turn) -> "Origin":
        """The origin after this turn, too."""
        values = {name: getattr(self, name) or stated(turn, name) for name in NAMES}
        return Origin(**values, started_at=self.started_at)


def stated(event: Event, name: str) -> str | None:
    """Return the team, domain or channel that an event states for its session."""
    value = getattr(event, name, None)
    return getattr(value, "value", value)


def refuse_contradiction(turn: Turn, known: Origin | SessionState) -> None:
    """Check that the turn states nothing else than the session's earlier turns.

    Raises:
        ContractError: with code ``contradicts-session``; it does not quote what they state.
    """
    for name in NAMES:
        given, before = stated(turn, name), getattr(known, name)
        if given is not None and before is not None and given != before:
            raise ContractError(
                CONTRADICTS, f"the session's earlier turns state another {name}; use another id"
            )
