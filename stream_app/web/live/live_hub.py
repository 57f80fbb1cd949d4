"""The hub of live events: numbers them, keeps the newest for replay, sends them to clients.

Runs on the event loop's thread; only the methods ``…_threadsafe`` may be called from other threads.
Memory is bounded: a ring buffer of events, and per client a queue of references to them.
"""

import asyncio
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Final

import msgspec
from msgspec import Struct

from stream_app.contracts import scores
from stream_app.contracts.interventions import Intervention, InterventionReceipt
from stream_app.contracts.scores import Alert, AlertAction, SessionScore, TurnScore
from stream_app.errors import RapportError
from stream_app.store.sessions.routing import SessionRouting
from stream_app.store.sessions.scope import Scope

REPLAY_BUFFER: Final = 10_000
"""Events kept for ``Last-Event-ID``; about 1 kB each."""
OVERLAP_MS: Final = 1_000
"""What is sent again to a client that comes from another process: clocks and readers differ."""
SEND_EVERY: Final = 0.4
"""Seconds for which the events of a busy stream are collected before they are sent together."""
SEEN_ACTIONS: Final = 5_000
FORGOTTEN_SESSIONS: Final = 5_000
"""Erased and hidden sessions whose events are ignored."""
CLIENT_QUEUE: Final = 2_000
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


class LiveEvent(Struct):
    """One live event; ``message`` is a JSON object. An event without ``routing`` goes to everyone.

    ``members``: what is added to the message; ``unnamed``: instead of it, for clients that may not
    see pseudonyms and names. ``at``: milliseconds since 1970, when its message was appended to the
    topic; the same in all web processes. Of events without a message: of the newest message before.
    """

    number: int
    kind: LiveEventKind
    message: bytes
    session_id: str | None = None
    routing: SessionRouting | None = None
    at: int = 0
    members: Mapping[str, object] | None = None
    unnamed: Mapping[str, object] | None = None
    _encoded: bytes | None = None
    _encoded_unnamed: bytes | None = None

    def encoded(self, epoch: str, *, deidentified: bool) -> bytes:
        """The event as a part of a stream; encoded once for all clients, and only if one gets it.

        ``epoch``: of the hub.
        """
        if deidentified and self.unnamed is not None:
            if self._encoded_unnamed is None:
                self._encoded_unnamed = self._encode(epoch, self.unnamed)
            return self._encoded_unnamed
        if self._encoded is None:
            self._encoded = self._encode(epoch, self.members)
        return self._encoded

    def _encode(self, epoch: str, members: Mapping[str, object] | None) -> bytes:
        data = self.message
        if members:
            data = b"%b,%b" % (data[:-1], msgspec.json.encode(members)[1:])
        if b"\n" in data or b"\r" in data:  # a worker's JSON has none; each would end the line
            data = data.translate(None, b"\r\n")
        head = f"id: {epoch}-{self.number}-{self.at}\r\nevent: {self.kind.value}\r\ndata: "
        return b"%b%b\r\n\r\n" % (head.encode(), data)


class Subscription(Struct, frozen=True):
    """The events that a client may see and has selected; None = no restriction.

    ``kinds``: other than ``resync`` and ``stale``, which everyone gets.
    """

    scope: Scope
    team: str | None = None
    domain: str | None = None
    session_id: str | None = None
    deidentified: bool = False
    person: str = ""
    kinds: frozenset[LiveEventKind] | None = None

    def matches(self, event: LiveEvent) -> bool:
        """Whether this client gets the event."""
        routing = event.routing
        if routing is None:
            return True
        return (
            (self.kinds is None or event.kind in self.kinds)
            and self.scope.team in (None, routing.team)
            and (self.scope.speaker is None or self.scope.speaker in routing.readers)
            and self.team in (None, routing.team)
            and self.domain in (None, routing.domain)
            and self.session_id in (None, event.session_id)
        )

    @property
    def audience(self) -> str | tuple[str] | None:
        """What most events differ in: one session, else one team (in a tuple), else None."""
        if self.session_id is not None:
            return self.session_id
        team = self.scope.team if self.scope.team is not None else self.team
        return None if team is None else (team,)


class Client:
    """One open stream."""

    def __init__(self, subscription: Subscription, client_queue: int) -> None:
        self.subscription = subscription
        self._max_queued = client_queue
        self._queue: deque[LiveEvent] = deque()
        self._available = asyncio.Event()
        self._taken = -SEND_EVERY

    def put(self, event: LiveEvent) -> None:
        """Queue an event; if the queue is full, replace its contents with a ``resync``."""
        if not self.subscription.matches(event):
            return
        if len(self._queue) >= self._max_queued:
            self._queue.clear()
            event = resync(event.number, event.at)
        self._queue.append(event)
        self._available.set()

    def drop(self, session_id: str) -> None:
        """Remove the queued events of a session."""
        kept = [event for event in self._queue if event.session_id != session_id]
        self._queue = deque(kept)

    async def take(self, timeout: float) -> list[LiveEvent]:
        """Remove and return all queued events; empty if none arrives within ``timeout`` seconds.

        An event after a pause is returned at once. Those that follow it closely wait until
        ``SEND_EVERY`` is over, so that a busy stream costs a few writes a second and not one for
        each event.
        """
        if not self._queue:
            try:
                await asyncio.wait_for(self._available.wait(), timeout)
            except TimeoutError:
                return []
        now = time.monotonic
        if (pause := self._taken + SEND_EVERY - now()) > 0:
            await asyncio.sleep(pause)
        self._taken = now()
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
        self._by_audience: dict[str | tuple[str] | None, set[Client]] = {}
        self._newest_ms = self._complete_from_ms = _now_ms()
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
        return f"{self.epoch}-{self._number}-{self._newest_ms}"

    def encode(self, events: Iterable[LiveEvent], subscription: Subscription) -> bytes:
        """These events as one piece of a stream, which costs one write."""
        unnamed = subscription.deidentified
        return b"".join(event.encoded(self.epoch, deidentified=unnamed) for event in events)

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
        audience = subscription.audience
        self._clients.add(client)
        self._by_audience.setdefault(audience, set()).add(client)
        try:
            yield client, self._missed(subscription, last_id)
        finally:
            self._clients.discard(client)
            self._by_audience[audience].discard(client)
            if not self._by_audience[audience]:
                del self._by_audience[audience]

    def broadcast(
        self,
        kind: LiveEventKind,
        message: bytes,
        session_id: str | None = None,
        routing: SessionRouting | None = None,
        members: Mapping[str, object] | None = None,
        unnamed: Mapping[str, object] | None = None,
    ) -> None:
        """Number an event, keep it for replay and queue it for matching clients.

        ``members``, ``unnamed``: as in ``LiveEvent``.
        """
        if session_id in self._forgotten:
            return
        self._number += 1
        at = self._newest_ms
        event = LiveEvent(self._number, kind, message, session_id, routing, at, members, unnamed)
        if len(self._ring) == self._ring.maxlen:
            self._complete_from_ms = max(self._complete_from_ms, self._ring[0].at + 1)
        self._ring.append(event)
        for client in self._audience_of(event):
            client.put(event)

    def advance(self, appended_ms: int) -> None:
        """The next events are of messages that were appended at this time, or later."""
        self._newest_ms = max(self._newest_ms, appended_ms)

    def advance_while_idle(self) -> None:
        """Nothing was appended lately: other processes need not look for what was before."""
        self.advance(_now_ms() - OVERLAP_MS)

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
        self.broadcast(LiveEventKind.RESYNC, b"{}")

    def forgotten(self, session_ids: Iterable[str]) -> set[str]:
        """Select those of these sessions whose events are ignored."""
        return self._forgotten.keys() & set(session_ids)

    def readmit(self, session_id: str) -> None:
        """Broadcast a session's events again: it may be read, because consent was renewed."""
        self._forgotten.pop(session_id, None)

    def mark_stale(self, since: str) -> None:
        """Tell clients that the broker is unavailable; ``since`` is an RFC 3339 time."""
        if self.live:
            self.live = False
            self.broadcast(LiveEventKind.STALE, msgspec.json.encode({"since": since}))

    def mark_live(self) -> None:
        """Tell clients that the topics are read from now on and earlier events may be lost."""
        self.live = True
        self._complete_from_ms = _now_ms()
        self.broadcast(LiveEventKind.RESYNC, b"{}")

    def broadcast_action_threadsafe(self, action: AlertAction, routing: SessionRouting) -> None:
        """Broadcast an action of this process immediately; callable from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.broadcast_action, action, routing)

    def broadcast_action(self, action: AlertAction, routing: SessionRouting) -> None:
        """Broadcast an action once: it may arrive both from this process and through the topic."""
        if self._seen(action.action_id):
            return
        self._broadcast_deed(LiveEventKind.ALERT_ACTION, action, routing)

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
        self._broadcast_deed(LiveEventKind.INTERVENTION, message, routing)

    def _broadcast_deed(
        self,
        kind: LiveEventKind,
        message: AlertAction | Intervention | InterventionReceipt,
        routing: SessionRouting,
    ) -> None:
        """Broadcast what somebody did, without the text of a note."""
        body: dict[str, object] = msgspec.to_builtins(message)
        body.pop("text", None)
        named = {"person": body.pop("person")} if "person" in body else None
        encoded = msgspec.json.encode(body)
        self.broadcast(kind, encoded, message.session_id, routing, named, {"person": None})

    def broadcast_message(
        self, message: TurnScore | SessionScore | Alert, routing: SessionRouting
    ) -> None:
        """Broadcast a message from a score or alert topic."""
        kind = {TurnScore: LiveEventKind.TURN, SessionScore: LiveEventKind.SESSION}.get(
            type(message), LiveEventKind.ALERT
        )
        self.broadcast_encoded(kind, scores.encode(message), message.session_id, routing)

    def broadcast_encoded(
        self,
        kind: LiveEventKind,
        message: bytes,
        session_id: str,
        routing: SessionRouting,
    ) -> None:
        """Broadcast the JSON of a turn score, a session score or an alert, as in its topic.

        It is not decoded: a web process sees all messages of all workers.
        """
        match kind:
            case LiveEventKind.TURN:
                self.broadcast(kind, message, session_id, routing)
            case LiveEventKind.SESSION:
                about = {"team": routing.team, "domain": routing.domain, "channel": routing.channel}
                named = {**about, "counsellors": routing.counsellors}
                unnamed: dict[str, object] = {**about, "counsellors": []}
                self.broadcast(kind, message, session_id, routing, named, unnamed)
            case _:
                about = {"team": routing.team, "domain": routing.domain}
                self.broadcast(kind, message, session_id, routing, about)

    def _audience_of(self, event: LiveEvent) -> Iterator[Client]:
        """Clients that may match the event; few of all, because most follow one team or session."""
        if event.routing is None:
            yield from self._clients
            return
        for key in {event.session_id, (event.routing.team or "",), None}:
            yield from self._by_audience.get(key, ())

    def _seen(self, identity: str) -> bool:
        """Whether this action was broadcast before; remembers it."""
        if identity in self._seen_actions:
            return True
        self._seen_actions[identity] = None
        while len(self._seen_actions) > SEEN_ACTIONS:
            self._seen_actions.popitem(last=False)
        return False

    def _missed(self, subscription: Subscription, last_id: str | None) -> list[LiveEvent]:
        if last_id is None:
            return []
        epoch, number, at = _parts(last_id)
        if epoch != self.epoch:
            return self._missed_since(subscription, at)
        oldest = self._ring[0].number if self._ring else self._number + 1
        if number is None or number > self._number or number < oldest - 1:
            return [resync(self._number, self._newest_ms)]
        return [
            event for event in self._ring if event.number > number and subscription.matches(event)
        ]

    def _missed_since(self, subscription: Subscription, at: int | None) -> list[LiveEvent]:
        """Events after an id of another process, and those of the second before it again."""
        since = 0 if at is None or at > _now_ms() else at - OVERLAP_MS
        if not self.live or since < self._complete_from_ms:
            return [resync(self._number, self._newest_ms)]
        return [
            event
            for event in self._ring
            if event.at >= since
            and event.kind is not LiveEventKind.STALE
            and subscription.matches(event)
        ]


def _parts(event_id: str) -> tuple[str, int | None, int | None]:
    """Epoch, number and time of an id; None for a part that is not a number."""
    epoch, number, at = (*event_id.split("-"), "", "", "")[:3]
    found = [int(part[:20]) if part.isascii() and part.isdigit() else None for part in (number, at)]
    return epoch, found[0], found[1]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def resync(number: int, at: int) -> LiveEvent:
    """An event that makes one client reload its state; events after ``number`` will follow."""
    return LiveEvent(number, LiveEventKind.RESYNC, b"{}", at=at)
