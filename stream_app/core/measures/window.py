"""Sliding context windows: which turns are scored when, and with which neighbours.

A turn is scored ``provisional`` as soon as it is in order, with up to ``before`` preceding turns,
and ``final`` after ``after`` following turns, or at the session's end (Xu & Jiang 2024 use three
utterances on either side). ::

    before = after = 2         seq  0   1   2   3   4
    provisional of 2 sees           0   1  [2]
    final of 2 sees                 0   1  [2]  3   4

Out-of-order turns wait in a bounded buffer. When the buffer is full, or an event arrives after the
maximum wait, the gap is given up; a turn that fills the gap afterwards is late: it is scored once,
final, with the neighbours still in the window. Nobody waits for a turn that was refused: its gap is
given up as soon as a later turn is there; until then, a mended turn may take its place.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import Enum

from msgspec import Struct, field

from stream_app.contracts.events import Role
from stream_app.contracts.scores import Span, Stage
from stream_app.core.measures.heads import Dimension

MAX_GAPS = 64
DIGESTS_KEPT = 64
REORDER_TURNS = 4
"""Turns that wait for a missing one, at most."""


class WindowPolicy(Struct, frozen=True):
    """Sizes in turns; ``reorder_wait`` in event time."""

    before: int = 3
    after: int = 3
    reorder_turns: int = REORDER_TURNS
    reorder_wait: timedelta = timedelta(seconds=30)


class WindowTurn(Struct, array_like=True):
    """A turn in its session's window.

    ``vectors``: 2 x hidden half floats, first-token state and mean of the token states, as bytes;
    empty until the turn has been encoded, and for withheld turns, which never are. ``rationales``:
    candidate text spans by mechanism, where there are any. ``digest``: of role and text, to
    distinguish a duplicate from another turn with the same ``seq``. ``crisis``: whether the list of
    ``core.crisis`` found a phrase; only in client turns. ``intents``: scores of the intents that
    the turn has, by name; None if they must not be read. ``tokens``: ids of the text's tokens, for
    a bundle whose reader reads an answer with the words before it; they spell the text, and are
    encrypted and expire as it does. ``readings``: what the reader said of the turn, so that a final
    score needs no second reading; both empty without a reader. ``speaker``: digest of the speaker's
    id; 0 in states of earlier releases. ``client``: digest of the client who speaks or is answered,
    by order unless the turn says so itself (``named``); 0 if it answers nobody known. ``parts``:
    the vectors of each part of a turn that is longer than the encoder reads, whose ``vectors`` are
    their mean; else empty.
    """

    seq: int
    role: Role
    occurred_at: datetime
    digest: int
    words: int
    vectors: bytes = b""
    rationales: dict[str, list[Span]] = {}
    truncated: bool = False
    late: bool = False
    withheld: bool = False
    crisis: bool = False
    intents: dict[str, float] | None = {}
    tokens: bytes = b""
    readings: bytes = b""
    speaker: int = 0
    client: int = 0
    named: bool = False
    parts: bytes = b""


def parts_of(vectors: bytes, parts: bytes) -> list[bytes]:
    """The vectors of each part of a turn; a short turn is its only part.

    >>> parts_of(b"ab", b""), parts_of(b"ab", b"acad")
    ([b'ab'], [b'ac', b'ad'])
    """
    size = len(vectors)
    return [parts[at : at + size] for at in range(0, len(parts), size)] if parts else [vectors]


class Neighbour(Struct, frozen=True):
    """A turn relative to another one: distance -1 is the previous turn, +1 the next."""

    turn: WindowTurn
    distance: int


class ScoringRequest(Struct, frozen=True):
    """A turn to be scored, with its context; ``restricted``: dimensions that must not be.

    ``uses``: how often its words had been said by its role when it was due, this turn included. It
    is counted then and not when the score comes: by then turns of the same batch have followed.
    """

    turn: WindowTurn
    stage: Stage
    context: list[Neighbour]
    restricted: frozenset[Dimension] = frozenset()
    uses: int = 1

    @property
    def is_first(self) -> bool:
        """Whether the turn has not been scored before; a late turn is scored only once."""
        return self.stage is Stage.PROVISIONAL or self.turn.late


class Placement(Enum):
    """Position of a turn relative to its window."""

    NEW = "new"
    LATE = "late"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"


class WindowState(Struct, array_like=True):
    """The window of one session; small and serialisable.

    ``refused``: numbers of refused turns, until a later turn makes them gaps. ``answers``: the
    clients whom turns of the history answer by order, which is known when they leave ``waiting``.
    """

    next_seq: int = 0
    history: list[WindowTurn] = field(default_factory=list)
    unfinished: list[int] = field(default_factory=list)
    waiting: dict[int, WindowTurn] = field(default_factory=dict)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    digests: dict[int, int] = field(default_factory=dict)
    refused: list[int] = field(default_factory=list)
    answers: dict[int, int] = field(default_factory=dict)


def placement_of(state: WindowState, seq: int, digest: int) -> Placement:
    """Find a turn's position before it is pushed."""
    known = state.waiting[seq].digest if seq in state.waiting else state.digests.get(seq)
    if known is not None:
        return Placement.DUPLICATE if known == digest else Placement.CONFLICT
    if seq < state.next_seq:
        return Placement.LATE if _gap_of(state, seq) is not None else Placement.DUPLICATE
    return Placement.NEW


def uses(state: WindowState, seq: int) -> int:
    """How often the turn's words have been said by its role up to it, among the turns known."""
    digest = state.digests.get(seq)
    return max(1, sum(other <= seq for other, known in state.digests.items() if known == digest))


def push(state: WindowState, turn: WindowTurn, policy: WindowPolicy) -> list[ScoringRequest]:
    """Add a new turn, or a late one (``turn.late``); return the due requests in order."""
    if turn.late:
        return _take_late(state, turn, policy)
    state.waiting[turn.seq] = turn
    if turn.seq in state.refused:  # its producer has mended it
        state.refused.remove(turn.seq)
    requests = _drain(state, policy)
    while state.waiting and _bound_reached(state, turn.occurred_at, policy):
        _give_up_gap(state)
        requests += _drain(state, policy)
    return requests


def pass_over(state: WindowState, seq: int, policy: WindowPolicy) -> list[ScoringRequest] | None:
    """Give up the gap of a refused turn; the requests due without it, None if nothing changes."""
    passed = seq < state.next_seq or seq in state.refused or seq in state.waiting
    if passed or len(state.refused) >= MAX_GAPS:
        return None
    state.refused.append(seq)
    return _drain(state, policy)


def flush(state: WindowState, policy: WindowPolicy) -> list[ScoringRequest]:
    """Return every pending request, as if no more turns would arrive."""
    requests: list[ScoringRequest] = []
    while state.waiting:
        _give_up_gap(state)
        requests += _drain(state, policy)
    requests += [_final(state, seq, policy) for seq in state.unfinished]
    state.unfinished.clear()
    return requests


def _bound_reached(state: WindowState, now: datetime, policy: WindowPolicy) -> bool:
    oldest = min(turn.occurred_at for turn in state.waiting.values())
    return len(state.waiting) > policy.reorder_turns or now - oldest > policy.reorder_wait


def _give_up_gap(state: WindowState) -> None:
    _skip_to(state, min(state.waiting))


def _skip_to(state: WindowState, seq: int) -> None:
    state.gaps.append((state.next_seq, seq - 1))
    del state.gaps[:-MAX_GAPS]
    state.next_seq = seq
    state.refused = [other for other in state.refused if other >= seq]


def _drain(state: WindowState, policy: WindowPolicy) -> list[ScoringRequest]:
    requests: list[ScoringRequest] = []
    while True:
        if state.waiting and state.next_seq in state.refused:
            _skip_to(state, state.next_seq + 1)
            continue
        turn = state.waiting.pop(state.next_seq, None)
        if turn is None:
            return requests
        state.next_seq += 1
        _remember(state, turn)
        if not turn.withheld:
            requests += _accept(state, turn, policy)


def _accept(state: WindowState, turn: WindowTurn, policy: WindowPolicy) -> list[ScoringRequest]:
    """Finals of earlier turns come first, because the risk after this turn uses them."""
    if turn.role is Role.COUNSELLOR and not turn.client and state.history:
        turn.client = state.history[-1].client
        state.answers[turn.seq] = turn.client
    before = state.history[-policy.before :] if policy.before else []
    context = _neighbours(turn, before, ())
    state.history.append(turn)
    state.unfinished.append(turn.seq)
    requests = [ScoringRequest(turn, Stage.PROVISIONAL, context, uses=uses(state, turn.seq))]
    if len(state.unfinished) > policy.after:
        complete = _final(state, state.unfinished.pop(0), policy)
        requests.insert(0 if policy.after else 1, complete)
    del state.history[: -(policy.before + policy.after + 1)]
    first = state.history[0].seq
    state.answers = {seq: client for seq, client in state.answers.items() if seq >= first}
    return requests


def _final(state: WindowState, seq: int, policy: WindowPolicy) -> ScoringRequest:
    at = next(i for i, turn in enumerate(state.history) if turn.seq == seq)
    own = state.history[at]
    before = state.history[max(0, at - policy.before) : at]
    after = state.history[at + 1 : at + policy.after + 1]
    context = _neighbours(own, before, after)
    return ScoringRequest(own, Stage.FINAL, context, uses=uses(state, seq))


def _concerns(turn: WindowTurn, other: WindowTurn) -> bool:
    """Whether a neighbour is read with a turn: an answer is read with the words of its client."""
    if turn.role is Role.CLIENT or not turn.client or not other.client:
        return True
    return other.client == turn.client


def _neighbours(
    turn: WindowTurn, before: Sequence[WindowTurn], after: Sequence[WindowTurn]
) -> list[Neighbour]:
    earlier = [other for other in before if _concerns(turn, other)]
    later = [other for other in after if _concerns(turn, other)]
    return [Neighbour(other, i - len(earlier)) for i, other in enumerate(earlier)] + [
        Neighbour(other, i + 1) for i, other in enumerate(later)
    ]


def _take_late(state: WindowState, turn: WindowTurn, policy: WindowPolicy) -> list[ScoringRequest]:
    gap = _gap_of(state, turn.seq)
    if gap is None:  # placement_of has just found it
        return []
    state.gaps.remove(gap)
    low, high = gap
    state.gaps += [(a, b) for a, b in ((low, turn.seq - 1), (turn.seq + 1, high)) if a <= b]
    state.gaps.sort()
    return insert_late(state, turn, policy)


def insert_late(state: WindowState, turn: WindowTurn, policy: WindowPolicy) -> list[ScoringRequest]:
    """Score a late turn with the neighbours that are still there, whatever the gaps are."""
    _remember(state, turn)
    if turn.withheld:
        return []
    before = [t for t in state.history if t.seq < turn.seq]
    after = [t for t in state.history if t.seq > turn.seq][: policy.after]
    if turn.role is Role.COUNSELLOR and not turn.client and before:
        turn.client = before[-1].client
    context = _neighbours(turn, before[-policy.before :] if policy.before else (), after)
    return [ScoringRequest(turn, Stage.FINAL, context, uses=uses(state, turn.seq))]


def _gap_of(state: WindowState, seq: int) -> tuple[int, int] | None:
    return next((gap for gap in state.gaps if gap[0] <= seq <= gap[1]), None)


def _remember(state: WindowState, turn: WindowTurn) -> None:
    state.digests[turn.seq] = turn.digest
    while len(state.digests) > DIGESTS_KEPT:
        del state.digests[min(state.digests)]
