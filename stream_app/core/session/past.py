"""The stored past of a session, for edits and deletions of its turns."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from msgspec import Struct

from stream_app.contracts.events import Role, TurnDelete, TurnEdit
from stream_app.contracts.scores import TurnScore, Unscored


class Arrived(Protocol):
    """A stored turn and when it arrived."""

    @property
    def late(self) -> bool:
        """Whether later turns were scored before it."""

    @property
    def arrived_at(self) -> datetime:
        """When it arrived."""


T = TypeVar("T", bound=Arrived)


def by_arrival(turns: Sequence[T]) -> Iterator[T]:
    """Turns in order by seq, each late one after all that arrived before it."""
    late = sorted((turn for turn in turns if turn.late), key=lambda turn: turn.arrived_at)
    in_order = [turn for turn in turns if not turn.late]
    places: dict[int, list[T]] = {}
    for turn in late:
        before = [i for i, one in enumerate(in_order) if one.arrived_at <= turn.arrived_at]
        places.setdefault(max(before, default=-1), []).append(turn)
    yield from places.get(-1, ())
    for place, turn in enumerate(in_order):
        yield turn
        yield from places.get(place, ())


class PastTurn(Struct, frozen=True):
    """A stored turn; ``text`` None: it has expired. ``arrived_at`` orders the late ones.

    ``speaker``: tells the speakers of the session apart; a pseudonym or an id.
    """

    seq: int
    role: Role
    text: str | None
    occurred_at: datetime
    words: int | None
    late: bool
    arrived_at: datetime
    unscored: Unscored | None = None
    turn_id: str | None = None
    speaker: str = ""


class PastSession(Struct, frozen=True):
    """The stored turns of a session and their scores; ``held``: nothing of it may be changed."""

    turns: Sequence[PastTurn] = ()
    scores: Sequence[TurnScore] = ()
    held: bool = False

    def named(self, event: TurnEdit | TurnDelete) -> PastTurn | None:
        """The turn that an event names; both its names must fit if it has both."""
        for turn in self.turns:
            by_seq = event.seq in (None, turn.seq)
            if by_seq and (event.turn_id in (None, turn.turn_id)):
                return turn
        return None


NO_PAST = PastSession()
