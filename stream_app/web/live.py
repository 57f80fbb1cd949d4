"""The hub of live events: numbers them, keeps the newest for replay, hands them to clients.

Everything here runs on the event loop's thread; only ``Hub.tell`` may be called from others.
Memory is bounded: a ring of events, and for each client a queue of references to them.
"""

import asyncio
import secrets
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Final

import msgspec
from msgspec import Struct

from stream_app.contracts.scores import Alert, SessionScore, TurnScore
from stream_app.errors import RapportError
from stream_app.store.reading.facts import Facts
from stream_app.store.reading.scope import Scope

REPLAYED: Final = 5_000
"""Events kept for ``Last-Event-ID``; about 1 kB each."""
QUEUED: Final = 500
"""Events that may wait for one client before it is told to load its page anew."""
MOST_CLIENTS: Final = 500
MOST_OF_ONE: Final = 100
"""Streams of one person, so that nobody takes the places of all."""


class TooManyClients(RapportError):
    """All places for live streams are taken."""


class Kind(Enum):
    """What a client is told of.

    ``resync``: events were lost to it; load the state anew. ``stale``: the broker is away.
    """

    SESSION = "session"
    TURN = "turn"
    ALERT = "alert"
    ALERT_ACTION = "alert-action"
    RESYNC = "resync"
    STALE = "stale"


class ActionTold(Struct, frozen=True, kw_only=True):
    """What somebody did to an alert, for other web processes; holds no note."""

    action_id: str
    episode_id: str
    session_id: str
    kind: str
    reason: str | None
    person: str
    at: str
    state: str


class LiveEvent(Struct, frozen=True):
    """One event; ``data`` is JSON. Without ``facts`` it is meant for every client."""

    number: int
    kind: Kind
    data: str
    session_id: str | None = None
    facts: Facts | None = None
    deidentified: str | None = None
    """``data`` without pseudonyms and names, where it holds some."""


class Wanted(Struct, frozen=True):
    """What a client may and wants to be told of; None = any."""

    scope: Scope
    team: str | None = None
    domain: str | None = None
    session_id: str | None = None
    deidentified: bool = False
    person: str = ""

    def takes(self, event: LiveEvent) -> bool:
        """Whether this client is told of it."""
        facts = event.facts
        if facts is None:
            return True
        return (
            self.scope.team in (None, facts.team)
            and (self.scope.speaker is None or self.scope.speaker in facts.counsellors)
            and self.team in (None, facts.team)
            and self.domain in (None, facts.domain)
            and self.session_id in (None, event.session_id)
        )

    def shown(self, event: LiveEvent) -> str:
        """The event's data as this client may see it."""
        return (event.deidentified if self.deidentified else None) or event.data


class Client:
    """One open stream."""

    def __init__(self, wanted: Wanted, queued: int) -> None:
        self.wanted = wanted
        self._most = queued
        self._queue: deque[LiveEvent] = deque()
        self._news = asyncio.Event()

    def put(self, event: LiveEvent) -> None:
        """Hand an event over; a client that is too slow loses what waits, and is told so."""
        if not self.wanted.takes(event):
            return
        if len(self._queue) >= self._most:
            self._queue.clear()
            event = resync(event.number)
        self._queue.append(event)
        self._news.set()

    async def take(self, patience: float) -> list[LiveEvent]:
        """What waits; empty if nothing came for ``patience`` seconds."""
        if not self._queue:
            try:
                await asyncio.wait_for(self._news.wait(), patience)
            except TimeoutError:
                return []
        self._news.clear()
        found = list(self._queue)
        self._queue.clear()
        return found


class Hub:
    """All live events of one web process."""

    def __init__(
        self, replayed: int = REPLAYED, queued: int = QUEUED, most_clients: int = MOST_CLIENTS
    ) -> None:
        self.epoch = secrets.token_hex(4)
        self.live = False
        """Whether the topics are being read."""
        self._number = 0
        self._ring: deque[LiveEvent] = deque(maxlen=replayed)
        self._queued = queued
        self._most_clients = most_clients
        self._clients: set[Client] = set()
        self._told: OrderedDict[str, None] = OrderedDict()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def clients(self) -> int:
        """Streams that are open."""
        return len(self._clients)

    @property
    def number(self) -> int:
        """Events since the start."""
        return self._number

    @property
    def position(self) -> str:
        """The id of the newest event; a page that holds it can ask for what came after."""
        return f"{self.epoch}-{self._number}"

    def id_of(self, event: LiveEvent) -> str:
        """The event's id on the stream."""
        return f"{self.epoch}-{event.number}"

    def opened(self) -> None:
        """Call once on the event loop, before ``tell``."""
        self._loop = asyncio.get_running_loop()

    def check_room(self, person: str) -> None:
        """Look whether this person may open another stream.

        Raises:
            TooManyClients: all places are taken, or all that one person may take.
        """
        own = sum(client.wanted.person == person for client in self._clients)
        if len(self._clients) >= self._most_clients or own >= MOST_OF_ONE:
            raise TooManyClients("too many live streams are open; try again later")

    @contextmanager
    def listening(
        self, wanted: Wanted, last_id: str | None
    ) -> Iterator[tuple[Client, list[LiveEvent]]]:
        """A client, and what it has missed since ``last_id``.

        Call ``check_room`` before.
        """
        client = Client(wanted, self._queued)
        self._clients.add(client)
        try:
            yield client, self._missed(wanted, last_id)
        finally:
            self._clients.discard(client)

    def emit(
        self,
        kind: Kind,
        data: str,
        session_id: str | None = None,
        facts: Facts | None = None,
        deidentified: str | None = None,
    ) -> None:
        """Number an event and hand it to all clients that it is for."""
        self._number += 1
        event = LiveEvent(self._number, kind, data, session_id, facts, deidentified)
        self._ring.append(event)
        for client in self._clients:
            client.put(event)

    def lost(self, since: str) -> None:
        """The broker is away."""
        if self.live:
            self.live = False
            self.emit(Kind.STALE, msgspec.json.encode({"since": since}).decode())

    def found(self) -> None:
        """The topics are read from here on; what went through them before is not known."""
        self.live = True
        self.emit(Kind.RESYNC, "{}")

    def tell(self, action: ActionTold, facts: Facts) -> None:
        """Tell of an action at once; may be called from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.take_action, action, facts)

    def take_action(self, action: ActionTold, facts: Facts) -> None:
        """Tell of an action, once: it may come from here and through the topic."""
        if action.action_id in self._told:
            return
        self._told[action.action_id] = None
        while len(self._told) > REPLAYED:
            self._told.popitem(last=False)
        body = msgspec.to_builtins(action)
        unnamed = msgspec.json.encode({**body, "person": None}).decode()
        data = msgspec.json.encode(body).decode()
        self.emit(Kind.ALERT_ACTION, data, action.session_id, facts, unnamed)

    def take(self, message: TurnScore | SessionScore | Alert, facts: Facts) -> None:
        """Tell of a message of the topics."""
        body = msgspec.to_builtins(message)
        session_id = message.session_id
        match message:
            case TurnScore():
                self.emit(Kind.TURN, msgspec.json.encode(body).decode(), session_id, facts)
            case SessionScore():
                body |= msgspec.to_builtins(facts)
                unnamed = msgspec.json.encode({**body, "counsellors": []}).decode()
                data = msgspec.json.encode(body).decode()
                self.emit(Kind.SESSION, data, session_id, facts, unnamed)
            case Alert():
                body |= {"team": facts.team, "domain": facts.domain}
                self.emit(Kind.ALERT, msgspec.json.encode(body).decode(), session_id, facts)

    def _missed(self, wanted: Wanted, last_id: str | None) -> list[LiveEvent]:
        if last_id is None:
            return []
        epoch, _, number = last_id.rpartition("-")
        if epoch != self.epoch or not (number.isascii() and number.isdigit()):
            return [resync(self._number)]
        seen = int(number[:20])
        oldest = self._ring[0].number if self._ring else self._number + 1
        if seen > self._number or seen < oldest - 1:
            return [resync(self._number)]
        return [event for event in self._ring if event.number > seen and wanted.takes(event)]


def resync(number: int) -> LiveEvent:
    """For one client: load the state anew; what comes after this number will be told."""
    return LiveEvent(number, Kind.RESYNC, "{}")
