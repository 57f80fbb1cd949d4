"""The hub of live events: numbers them, keeps the newest for replay, sends them to clients.

Runs on the event loop's thread; only the methods ``…_threadsafe`` may be called from other threads.
Memory is bounded: a ring buffer of events, and per client a queue of references to them.
"""

import asyncio
import secrets
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Final

import msgspec
from msgspec import Struct

from stream_app.contracts.interventions import Intervention, InterventionReceipt
from stream_app.contracts.scores import Alert, AlertAction, SessionScore, TurnScore
from stream_app.errors import RapportError
from stream_app.store.queries.routing import SessionRouting
from stream_app.store.queries.scope import Scope

REPLAY_BUFFER: Final = 5_000
"""Events kept for ``Last-Event-ID``; about 1 kB each."""
FORGOTTEN_SESSIONS: Final = 5_000
"""Erased and hidden sessions whose events are ignored."""
CLIENT_QUEUE: Final = 500
"""Events that may be queued for one client; if it falls further behind, it gets a ``resync``."""
MAX_CLIENTS: Final = 500
MAX_CLIENTS_PER_PERSON: Final = 100
"""Open streams of one person, so that no one can use up all streams."""


class TooManyClients(RapportError):
    """The maximum number of live streams is open."""


class LiveEventKind(Enum):
    """Kind of a live event.

    ``resync``: the client has lost events and must reload its state. ``stale``: the broker is
    unavailable.
    """

    SESSION = "session"
    TURN = "turn"
    ALERT = "alert"
    ALERT_ACTION = "alert-action"
    INTERVENTION = "intervention"
    RESYNC = "resync"
    STALE = "stale"


class LiveEvent(Struct, frozen=True):
    """One live event; ``data`` is JSON. An event without ``routing`` goes to every client."""

    number: int
    kind: LiveEventKind
    data: str
    session_id: str | None = None
    routing: SessionRouting | None = None
    deidentified: str | None = None
    """``data`` without pseudonyms and names; None if it contains none."""


class Subscription(Struct, frozen=True):
    """The events that a client may see and has selected; None = no restriction."""

    scope: Scope
    team: str | None = None
    domain: str | None = None
    session_id: str | None = None
    deidentified: bool = False
    person: str = ""

    def matches(self, event: LiveEvent) -> bool:
        """Whether this client gets the event."""
        routing = event.routing
        if routing is None:
            return True
        return (
            self.scope.team in (None, routing.team)
            and (self.scope.speaker is None or self.scope.speaker in routing.readers)
            and self.team in (None, routing.team)
            and self.domain in (None, routing.domain)
            and self.session_id in (None, event.session_id)
        )

    def data_for(self, event: LiveEvent) -> str:
        """The event's data, without names if the client may not see them."""
        return (event.deidentified if self.deidentified else None) or event.data


class Client:
    """One open stream."""

    def __init__(self, subscription: Subscription, client_queue: int) -> None:
        self.subscription = subscription
        self._max_queued = client_queue
        self._queue: deque[LiveEvent] = deque()
        self._available = asyncio.Event()

    def put(self, event: LiveEvent) -> None:
        """Queue an event; if the queue is full, replace its contents with a ``resync``."""
        if not self.subscription.matches(event):
            return
        if len(self._queue) >= self._max_queued:
            self._queue.clear()
            event = resync(event.number)
        self._queue.append(event)
        self._available.set()

    def drop(self, session_id: str) -> None:
        """Remove the queued events of a session."""
        kept = [event for event in self._queue if event.session_id != session_id]
        self._queue = deque(kept)

    async def take(self, timeout: float) -> list[LiveEvent]:
        """Remove and return all queued events; empty if none arrives within ``timeout`` seconds."""
        if not self._queue:
            try:
                await asyncio.wait_for(self._available.wait(), timeout)
            except TimeoutError:
                return []
        self._available.clear()
        found = list(self._queue)
        self._queue.clear()
        return found


class Hub:
    """Distributes the live events of one web process to its clients."""

    def __init__(
        self,
        replay_buffer: int = REPLAY_BUFFER,
        client_queue: int = CLIENT_QUEUE,
        max_clients: int = MAX_CLIENTS,
    ) -> None:
        self.epoch = secrets.token_hex(4)
        self.live = False
        """Whether the topics are currently being read."""
        self._number = 0
        self._ring: deque[LiveEvent] = deque(maxlen=replay_buffer)
        self._client_queue = client_queue
        self._max_clients = max_clients
        self._clients: set[Client] = set()
        self._seen_actions: OrderedDict[str, None] = OrderedDict()
        self._forgotten: OrderedDict[str, None] = OrderedDict()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def clients(self) -> int:
        """Number of open streams."""
        return len(self._clients)

    @property
    def number(self) -> int:
        """Number of events since the process started."""
        return self._number

    @property
    def position(self) -> str:
        """The id of the newest event; clients can resume from it."""
        return f"{self.epoch}-{self._number}"

    def id_of(self, event: LiveEvent) -> str:
        """The event's id on the stream."""
        return f"{self.epoch}-{event.number}"

    def bind_loop(self) -> None:
        """Remember the running event loop; call this before the methods ``…_threadsafe``."""
        self._loop = asyncio.get_running_loop()

    def check_room(self, person: str) -> None:
        """Check that this person may open another stream.

        Raises:
            TooManyClients: the limit of the process or of this person is reached.
        """
        own = sum(client.subscription.person == person for client in self._clients)
        if len(self._clients) >= self._max_clients or own >= MAX_CLIENTS_PER_PERSON:
            raise TooManyClients("too many live streams are open; try again later")

    @contextmanager
    def subscribe(
        self, subscription: Subscription, last_id: str | None
    ) -> Iterator[tuple[Client, list[LiveEvent]]]:
        """Register a client; yields it and the events it has missed since ``last_id``.

        Call ``check_room`` first.
        """
        client = Client(subscription, self._client_queue)
        self._clients.add(client)
        try:
            yield client, self._missed(subscription, last_id)
        finally:
            self._clients.discard(client)

    def broadcast(
        self,
        kind: LiveEventKind,
        data: str,
        session_id: str | None = None,
        routing: SessionRouting | None = None,
        deidentified: str | None = None,
    ) -> None:
        """Number an event, keep it for replay and queue it for matching clients."""
        if session_id in self._forgotten:
            return
        self._number += 1
        event = LiveEvent(self._number, kind, data, session_id, routing, deidentified)
        self._ring.append(event)
        for client in self._clients:
            client.put(event)

    def forget(self, session_id: str) -> None:
        """Drop all buffered and queued events of a session, and ignore later ones.

        It was erased, or hidden because consent was withdrawn. Clients reload their pages.
        """
        if session_id in self._forgotten:
            return
        self._forgotten[session_id] = None
        while len(self._forgotten) > FORGOTTEN_SESSIONS:
            self._forgotten.popitem(last=False)
        kept = [event for event in self._ring if event.session_id != session_id]
        self._ring = deque(kept, maxlen=self._ring.maxlen)
        for client in self._clients:
            client.drop(session_id)
        self.broadcast(LiveEventKind.RESYNC, "{}")

    def forgotten(self, session_ids: Iterable[str]) -> set[str]:
        """Those of these sessions whose events are ignored."""
        return self._forgotten.keys() & set(session_ids)

    def readmit(self, session_id: str) -> None:
        """Broadcast a session's events again: it may be read, because consent was renewed."""
        self._forgotten.pop(session_id, None)

    def mark_stale(self, since: str) -> None:
        """Tell clients that the broker is unavailable; ``since`` is an RFC 3339 time."""
        if self.live:
            self.live = False
            self.broadcast(LiveEventKind.STALE, msgspec.json.encode({"since": since}).decode())

    def mark_live(self) -> None:
        """Tell clients that the topics are read from now on and earlier events may be lost."""
        self.live = True
        self.broadcast(LiveEventKind.RESYNC, "{}")

    def broadcast_action_threadsafe(self, action: AlertAction, routing: SessionRouting) -> None:
        """Broadcast an action of this process immediately; callable from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.broadcast_action, action, routing)

    def broadcast_action(self, action: AlertAction, routing: SessionRouting) -> None:
        """Broadcast an action once: it may arrive both from this process and through the topic."""
        if self._seen(action.action_id):
            return
        body = msgspec.to_builtins(action)
        unnamed = msgspec.json.encode({**body, "person": None}).decode()
        data = msgspec.json.encode(body).decode()
        self.broadcast(LiveEventKind.ALERT_ACTION, data, action.session_id, routing, unnamed)

    def broadcast_intervention_threadsafe(
        self, message: Intervention | InterventionReceipt, routing: SessionRouting
    ) -> None:
        """Broadcast an intervention of this process immediately; callable from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.broadcast_intervention, message, routing)

    def broadcast_intervention(
        self,
        message: Intervention | InterventionReceipt,
        routing: SessionRouting,
        *,
        again: bool = False,
    ) -> None:
        """Broadcast an intervention or its receipt once, without the text of a note.

        ``again``: also if it was broadcast before, because it has been published since.
        """
        if self._seen(f"{message.intervention_id} {type(message).__name__}") and not again:
            return
        body = msgspec.to_builtins(message)
        body.pop("text", None)
        unnamed = msgspec.json.encode({**body, "person": None}).decode()
        data = msgspec.json.encode(body).decode()
        self.broadcast(LiveEventKind.INTERVENTION, data, message.session_id, routing, unnamed)

    def broadcast_message(
        self, message: TurnScore | SessionScore | Alert, routing: SessionRouting
    ) -> None:
        """Broadcast a message from a score or alert topic."""
        body = msgspec.to_builtins(message)
        session_id = message.session_id
        match message:
            case TurnScore():
                self.broadcast(
                    LiveEventKind.TURN, msgspec.json.encode(body).decode(), session_id, routing
                )
            case SessionScore():
                body |= msgspec.to_builtins(routing)
                del body["readers"]
                unnamed = msgspec.json.encode({**body, "counsellors": []}).decode()
                data = msgspec.json.encode(body).decode()
                self.broadcast(LiveEventKind.SESSION, data, session_id, routing, unnamed)
            case Alert():
                body |= {"team": routing.team, "domain": routing.domain}
                self.broadcast(
                    LiveEventKind.ALERT, msgspec.json.encode(body).decode(), session_id, routing
                )

    def _seen(self, identity: str) -> bool:
        """Whether this action was broadcast before; remembers it."""
        if identity in self._seen_actions:
            return True
        self._seen_actions[identity] = None
        while len(self._seen_actions) > REPLAY_BUFFER:
            self._seen_actions.popitem(last=False)
        return False

    def _missed(self, subscription: Subscription, last_id: str | None) -> list[LiveEvent]:
        if last_id is None:
            return []
        epoch, _, number = last_id.rpartition("-")
        if epoch != self.epoch or not (number.isascii() and number.isdigit()):
            return [resync(self._number)]
        seen = int(number[:20])
        oldest = self._ring[0].number if self._ring else self._number + 1
        if seen > self._number or seen < oldest - 1:
            return [resync(self._number)]
        return [
            event for event in self._ring if event.number > seen and subscription.matches(event)
        ]


def resync(number: int) -> LiveEvent:
    """An event that makes one client reload its state; events after ``number`` will follow."""
    return LiveEvent(number, LiveEventKind.RESYNC, "{}")
