"""Exchanges of a session: client turns and the counsellor's answers to them.

An exchange begins with a client turn after a counsellor turn and includes the counsellor turns up
to the next client turn. Its *opportunity* (0-1) is that of the client turn that calls most for an
empathic answer; its *answer* (0-1) is the most empathic of the counsellor turns::

    client      c0 c1          c4       c6 …
    counsellor        k2 k3       k5
    exchange    └──── 1 ────┘  └─ 2 ─┘  └ not answered yet

A counsellor turn before any client turn (a greeting) answers nothing. With several clients, each
has exchanges of their own: the turns of one client since the last answer to that client, and the
answers up to their next turn. An answer to one client by name passes over the others who wait; if
what they said is an empathic opportunity, it is missed as long as nobody answers it. Passed over
again, what they have said since is missed, too; an answer at last is one to all of it.

All values are integers in millionths, so that replacing a provisional score by a final one gives
exactly the result of a run with final scores only.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field, structs

from stream_app.contracts.events import Role

KEPT: Final = 10
"""Number of latest exchanges kept individually; earlier ones are kept as sums."""
MISSED_KEPT: Final = 50
"""Number of latest missed opportunities that are listed."""
MILLION: Final = 1_000_000


class Weighing(Struct, frozen=True):
    """Weights of exchanges, and thresholds for opportunities and answers.

    All in [0, 1]. An exchange has the weight ``floor + (1 - floor) * opportunity``; it is an
    empathic opportunity from ``opportunity`` on, and answered from ``answered`` on.
    """

    floor: float
    opportunity: float
    answered: float

    def weight(self, opportunity: int) -> int:
        """Weight of an exchange in millionths."""
        return round(self.floor * MILLION + (1.0 - self.floor) * opportunity)


class Turns(Struct, array_like=True):
    """One side's turns of an exchange: the strongest settled one, and the latest.

    A seq of -1 means none. ``latest``: (seq, value); their scores may still be replaced.
    """

    settled_seq: int = -1
    settled: int = 0
    latest: list[tuple[int, int]] = field(default_factory=list)

    def replace(self, seq: int, value: int) -> bool:
        """Replace a turn's value; return False if the turn is not among the latest."""
        for place, (known, _) in enumerate(self.latest):
            if known == seq:
                self.latest[place] = (seq, value)
                return True
        return False

    def add(self, seq: int, value: int, keep: int) -> None:
        """Add a turn; all but the ``keep`` latest are settled."""
        self.latest.append((seq, value))
        while len(self.latest) > keep:
            oldest, strength = self.latest.pop(0)
            if self.settled_seq < 0 or strength > self.settled:
                self.settled_seq, self.settled = oldest, strength

    def before(self, later: "Turns") -> "Turns":
        """These turns and later ones."""
        first, second = self.settled_seq >= 0, later.settled_seq >= 0
        strongest = later if second and (not first or later.settled > self.settled) else self
        return Turns(strongest.settled_seq, strongest.settled, [*self.latest, *later.latest])

    def copy(self) -> "Turns":
        """The same turns, which may change without these."""
        return Turns(self.settled_seq, self.settled, list(self.latest))

    @property
    def strongest(self) -> tuple[int, int] | None:
        """(seq, value) of the turn with the largest value; ties go to the earliest."""
        found = (self.settled_seq, self.settled) if self.settled_seq >= 0 else None
        for turn in self.latest:
            if found is None or turn[1] > found[1]:
                found = turn
        return found

    def __bool__(self) -> bool:
        return self.settled_seq >= 0 or bool(self.latest)


class Exchange(Struct, array_like=True):
    """One exchange of the client ``who``.

    ``passed``: passed over while it waited. ``shared``: somebody else has answered.
    """

    client: Turns = field(default_factory=Turns)
    counsellor: Turns = field(default_factory=Turns)
    who: int = 0
    passed: bool = False
    shared: bool = False

    def copy(self) -> "Exchange":
        """The same exchange, which may change without this one."""
        own = self.client.copy(), self.counsellor.copy()
        return Exchange(*own, self.who, self.passed, self.shared)

    @property
    def waits(self) -> bool:
        """Whether nobody has answered."""
        return not self.counsellor and not self.shared


class Answered(Struct, frozen=True):
    """An exchange with a counsellor turn; ``seq``: the client turn with the highest opportunity.

    ``opportunity`` and ``answer`` in millionths. ``passed``: nobody answered, and it was passed
    over, which counts only if it was an opportunity.
    """

    seq: int
    opportunity: int
    answer: int
    passed: bool = False


class Exchanges(Struct, array_like=True):
    """The exchanges of a session so far: sums of the settled ones, and the latest.

    ``weight``, ``weighted``: sum of the weights, and of weight times answer, in millionths.
    ``opportunities``, ``met``: number of empathic opportunities, and of those answered. ``unseen``:
    turns are missing, so the next counsellor turn answers no known turn. ``last``: the highest seq
    so far; an earlier final turn outside all exchanges answers nothing.
    """

    count: int = 0
    weight: int = 0
    weighted: int = 0
    opportunities: int = 0
    met: int = 0
    missed: list[int] = field(default_factory=list)
    latest: list[Exchange] = field(default_factory=list)
    unseen: bool = False
    last: int = -1

    def observe(
        self,
        role: Role,
        seq: int,
        value: int,
        after: int,
        weighing: Weighing,
        who: int = 0,
        named: bool = False,
    ) -> None:
        """Add a scored turn, or replace its provisional value. ``after``: the window's size.

        ``who``: the client who speaks or is answered; ``named``: the answer says so itself.
        """
        keep = after + 1
        for exchange in reversed(self.latest):
            turns = exchange.client if role is Role.CLIENT else exchange.counsellor
            if turns.replace(seq, value):
                return
        if seq <= self.last:
            return
        self.last = seq
        if role is Role.CLIENT:
            self._of_speaking(who).client.add(seq, value, keep)
        elif (answered := self._of_answered(who)) is not None:
            answered.counsellor.add(seq, value, keep)
            if named:
                self._pass_over(who)
        while len(self.latest) > max(KEPT, keep):
            self._settle(self.latest.pop(0), weighing)

    def _of(self, who: int) -> Exchange | None:
        """The latest exchange of a client."""
        return next((e for e in reversed(self.latest) if e.who == who), None)

    def _of_speaking(self, who: int) -> Exchange:
        """The exchange of a client who speaks: begun if the one before is over."""
        exchange = self._of(who)
        if exchange is None or not exchange.waits or exchange.passed or self.unseen:
            if exchange is not None and exchange.shared and not exchange.counsellor:
                self.latest.remove(exchange)
            exchange = Exchange(who=who)
            self.latest.append(exchange)
        self.unseen = False
        return exchange

    def _of_answered(self, who: int) -> Exchange | None:
        """The exchange of a client who is answered; None if what they said is not known."""
        if self.unseen:
            return None
        self._join_passed(who)
        return self._of(who)

    def _join_passed(self, who: int) -> None:
        """Make one exchange of all that a client said while being passed over."""
        latest = self._of(who)
        if latest is None or not latest.waits:
            return
        for earlier in [each for each in self.latest if each.who == who and each.passed][::-1]:
            if earlier is not latest and earlier.waits:
                latest.client = earlier.client.before(latest.client)
                self.latest.remove(earlier)

    def _pass_over(self, who: int) -> None:
        for exchange in self.latest:
            if exchange.who != who and exchange.waits:
                exchange.passed = True

    def _settle(self, exchange: Exchange, weighing: Weighing) -> None:
        found = _answered(exchange)
        if found is None or not counts(found, weighing):
            return
        weight = weighing.weight(found.opportunity)
        self.count += 1
        self.weight += weight
        self.weighted += round(weight * found.answer / MILLION)
        if found.opportunity >= weighing.opportunity * MILLION:
            self.opportunities += 1
            if found.answer >= weighing.answered * MILLION:
                self.met += 1
            else:
                self.missed.append(found.seq)
                del self.missed[:-MISSED_KEPT]

    def forget(self) -> None:
        """Note that turns are withheld: the next counsellor turn answers no known turn.

        Clients who wait may have been answered, so that nobody passes them over.
        """
        self.unseen = True
        if any(exchange.who for exchange in self.latest):
            self.latest = [each for each in self.latest if each.counsellor]

    def share(self, who: int) -> None:
        """Note that somebody else has answered a client: nobody passes them over any more."""
        self._join_passed(who)
        exchange = self._of(who)
        if exchange is not None:
            exchange.passed, exchange.shared = False, True

    def copy(self) -> "Exchanges":
        """The same exchanges, which may change without these."""
        latest = [each.copy() for each in self.latest]
        return structs.replace(self, missed=list(self.missed), latest=latest)

    def unanswered(self) -> "Exchanges":
        """Only the clients' turns that nobody has answered."""
        clients: dict[int, Turns] = {}
        for each in self.latest:
            if each.waits and (each.passed or self._of(each.who) is each):
                clients[each.who] = clients.get(each.who, Turns()).before(each.client)
        latest = [Exchange(client=turns, who=who) for who, turns in clients.items()]
        return Exchanges(latest=latest, unseen=self.unseen, last=self.last)

    def answered(self) -> list[Answered]:
        """The latest exchanges with a counsellor turn or passed over, in order."""
        return [found for exchange in self.latest if (found := _answered(exchange)) is not None]


class Heard(Struct, frozen=True):
    """A turn with its opportunity or answer, in millionths.

    ``after_unseen``: turns before it are withheld, so it answers no known turn.
    """

    role: Role
    seq: int
    value: int
    after_unseen: bool = False


class Opportunity(Struct, frozen=True):
    """An empathic opportunity: its client turn, and the counsellor turns of its exchange."""

    seq: int
    answers: list[int]


def opportunities(turns: Iterable[Heard], weighing: Weighing) -> list[Opportunity]:
    """The empathic opportunities of a session that a counsellor turn followed, in order.

    ``turns``: ordered by seq, with their final values, without late ones.
    """
    exchanges = Exchanges()
    called: dict[int, int] = {}
    answers: dict[int, list[int]] = {}
    for turn in turns:
        if turn.after_unseen:
            exchanges.forget()
        exchanges.observe(turn.role, turn.seq, turn.value, 0, weighing)
        if turn.role is Role.CLIENT or not exchanges.latest:
            continue
        latest = exchanges.latest[-1]
        asked = latest.client.strongest
        if asked is not None and (turn.seq, turn.value) in latest.counsellor.latest:
            called[asked[0]] = asked[1]
            answers.setdefault(asked[0], []).append(turn.seq)
    return [
        Opportunity(seq, answers[seq])
        for seq, opportunity in called.items()
        if opportunity >= weighing.opportunity * MILLION
    ]


def _answered(exchange: Exchange) -> Answered | None:
    called, answer = exchange.client.strongest, exchange.counsellor.strongest
    if called is None or (answer is None and not exchange.passed):
        return None
    if answer is None:
        return Answered(called[0], called[1], 0, passed=True)
    return Answered(called[0], called[1], answer[1])


def counts(found: Answered, weighing: Weighing) -> bool:
    """Whether an exchange counts: one that was passed over does if it called for an answer."""
    return not found.passed or found.opportunity >= weighing.opportunity * MILLION
