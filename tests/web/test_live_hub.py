"""An erased session leaves the memory of a web process, and its late events stay out."""

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from stream_app.contracts.scores import AlertAction, encode
from stream_app.store.sessions.routing import SessionRouting, read_routing
from stream_app.store.sessions.scope import ALL_SESSIONS, Scope
from stream_app.store.stream.repository import Store
from stream_app.store.work import assignments
from stream_app.web.live import live_hub
from stream_app.web.live.live_hub import Hub, LiveEventKind, Subscription
from stream_app.web.live.topic_reader import RoutingCache, TopicReader
from tests.frames import framed
from tests.store.batches import BUNDLE, consent, prepare, process, turn
from tests.store.databases import open_store, sqlite


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = prepare(open_store(sqlite(tmp_path / "rapport.db")))
    yield opened
    opened.close()


def test_events_of_an_erased_session_are_dropped_everywhere() -> None:
    hub = Hub()
    start = hub.position
    results = [process([turn(seq, session_id=name) for seq in (0, 1)]) for name in "ba"]

    def broadcast() -> None:
        for result in results:
            for message in result.session_scores:
                hub.broadcast_message(message, SessionRouting())

    def replayed() -> list[tuple[LiveEventKind, str | None]]:
        with hub.subscribe(Subscription(ALL_SESSIONS), start) as (_, missed):
            return [(event.kind, event.session_id) for event in missed]

    broadcast()
    with hub.subscribe(Subscription(ALL_SESSIONS), None) as (client, _):
        broadcast()
        hub.forget("a")
        hub.forget("a")
        broadcast()
        queued = [(event.kind, event.session_id) for event in client._queue]
    told = (LiveEventKind.SESSION, "b")
    assert queued == [told, (LiveEventKind.RESYNC, None), told]
    assert replayed() == [told, told, (LiveEventKind.RESYNC, None), told]


async def test_a_hidden_session_is_broadcast_again_once_it_can_be_read(store: Store) -> None:
    """A renewed consent shows a session; a late event of a hidden or erased one does not."""
    hub = Hub()
    reader = TopicReader(hub, store, [], ["actions"], {}, declare=_nothing)
    given = process([turn(session_id=name) for name in ("reopened", "hidden")])
    store.commit(given)
    states = store.load_states(["hidden"], BUNDLE)
    store.commit(process([consent("withdrawn", session_id="hidden")], states))
    start = hub.position
    for name in ("reopened", "hidden", "erased"):
        hub.forget(name)
    messages = [*given.session_scores, *process([turn(session_id="erased")]).session_scores]
    await reader._readmit(messages)
    for message in messages:
        hub.broadcast_message(message, SessionRouting())
    with hub.subscribe(Subscription(ALL_SESSIONS), start) as (_, missed):
        found = [event.session_id for event in missed if event.kind is LiveEventKind.SESSION]
    assert found == ["reopened"]


@pytest.mark.parametrize("schema_id", [None, 3, 2**32 - 1])
async def test_framed_and_bare_messages_reach_the_hub(store: Store, schema_id: int | None) -> None:
    """Scores may be framed by workers, actions by other programs; noise is left out."""
    result = process([turn(0), turn(1)])
    store.commit(result)
    action = AlertAction(
        action_id="a1",
        episode_id="e1",
        session_id="s",
        kind="acknowledge",
        reason=None,
        person="nora",
        at="2026-03-03T08:00:00Z",
        state="acknowledged",
    )
    values = [b"\0\0\0", b"\0\0\0\0\7{", encode(result.session_scores[0])]
    records = [
        SimpleNamespace(topic="scores", key=b"s", value=value, timestamp=0) for value in values
    ]
    records.append(SimpleNamespace(topic="actions", key=b"s", value=encode(action), timestamp=0))
    if schema_id is not None:
        for record in records[2:]:
            record.value = framed(schema_id, record.value)

    async def getmany(**_: object) -> dict[str, list[SimpleNamespace]]:
        return {"all": records}

    hub = Hub()
    start = hub.position
    reader = TopicReader(hub, store, ["scores"], ["actions"], {}, declare=_nothing)
    consumer: Any = SimpleNamespace(getmany=getmany)
    await reader._batch(consumer, RoutingCache(store, time.monotonic))
    with hub.subscribe(Subscription(ALL_SESSIONS), start) as (_, missed):
        kinds = {event.kind for event in missed}
    assert kinds == {LiveEventKind.SESSION, LiveEventKind.ALERT_ACTION}


async def _nothing() -> None:
    """Topics exist."""


@pytest.mark.parametrize(("speaker", "received"), [("first", 1), ("later", 0), ("assigned", 1)])
def test_counsellors_get_events_of_sessions_that_they_may_read(
    store: Store, speaker: str, received: int
) -> None:
    said = [turn(0, speaker_id="c"), turn(1, speaker_id="first"), turn(3, speaker_id="later")]
    result = process(said)
    store.commit(result)
    pseudonyms = {name: store.privacy.pseudonym(name) for name in ("first", "later", "assigned")}
    assignments.assign(store, "s", pseudonyms["assigned"], "sue")
    hub = Hub()
    routing = read_routing(store, ["s"])["s"]
    assert routing.counsellors == sorted([pseudonyms["first"], pseudonyms["later"]])
    own = Subscription(Scope(speaker=pseudonyms[speaker]))
    with hub.subscribe(own, None) as (client, _):
        hub.broadcast_message(result.session_scores[0], routing)
        assert len(client._queue) == received
        assert b"readers" not in hub.encode(client._queue, own)


def _advanced(hub: Hub, ms: int, session_id: str) -> None:
    hub.advance(ms)
    hub.broadcast(LiveEventKind.TURN, b"{}", session_id, SessionRouting())


def _sessions_after(hub: Hub, last_id: str) -> list[str | None]:
    """Sessions of the events that a client gets at first; None for a resync."""
    with hub.subscribe(Subscription(ALL_SESSIONS), last_id) as (_, missed):
        return [event.session_id for event in missed]


def test_an_id_of_another_process_continues_at_its_time() -> None:
    """::

    one     a    b|                 b is the last that its client has got
    other   a    b    c             c is missed, b is sent again: it is less than a second older
    """
    one, other = Hub(), Hub()
    for hub in (one, other):
        hub.mark_live()
    now = time.time_ns() // 1_000_000
    for hub in (one, other):
        _advanced(hub, now + 2_000, "a")
        _advanced(hub, now + 3_500, "b")
    position = one.position
    _advanced(other, now + 4_500, "c")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_hub, "_now_ms", lambda: now + 5_000)
        assert _sessions_after(other, position) == ["b", "c"]


@pytest.mark.parametrize("position", ["0badf00d-7", "0badf00d-7-", "0badf00d--1", "-", "a-b-c-d"])
def test_an_id_without_a_time_gets_a_resync(position: str) -> None:
    hub = Hub()
    hub.mark_live()
    with hub.subscribe(Subscription(ALL_SESSIONS), position) as (_, missed):
        assert [event.kind for event in missed] == [LiveEventKind.RESYNC]


def test_an_id_from_before_the_process_read_or_from_the_future_gets_a_resync() -> None:
    hub = Hub()
    hub.mark_live()
    now = time.time_ns() // 1_000_000
    for at in (now - 60_000, now + 60_000, 0, 10**19):
        with hub.subscribe(Subscription(ALL_SESSIONS), f"0badf00d-7-{at}") as (_, missed):
            assert [event.kind for event in missed] == [LiveEventKind.RESYNC], at


def test_an_id_from_before_the_oldest_event_that_is_kept_gets_a_resync() -> None:
    hub = Hub(replay_buffer=2)
    hub.mark_live()
    now = time.time_ns() // 1_000_000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_hub, "_now_ms", lambda: now + 60_000)
        for second in (10, 20, 30):
            _advanced(hub, now + second * 1000, f"s{second}")
        assert _sessions_after(hub, f"0badf00d-7-{now + 21_500}") == ["s30"]
        assert _sessions_after(hub, f"0badf00d-7-{now + 10_500}") == [None]


@pytest.mark.parametrize(
    "subscription",
    [
        Subscription(ALL_SESSIONS),
        Subscription(ALL_SESSIONS, team="north"),
        Subscription(Scope(team="north")),
        Subscription(ALL_SESSIONS, session_id="s"),
        Subscription(Scope(team="north"), session_id="s"),
        Subscription(ALL_SESSIONS, domain="counselling"),
        Subscription(Scope(speaker="c")),
        Subscription(Scope(team="south")),
        Subscription(Scope(team="south"), team="north"),
        Subscription(ALL_SESSIONS, session_id="other"),
    ],
)
@pytest.mark.parametrize("team", ["north", None])
def test_clients_get_exactly_the_events_that_match(
    subscription: Subscription, team: str | None
) -> None:
    """Whichever audience a client is filed under."""
    hub = Hub()
    routing = SessionRouting(team, "counselling", readers=["c"])
    with hub.subscribe(subscription, None) as (client, _):
        hub.broadcast(LiveEventKind.TURN, b"{}", "s", routing)
        [event] = hub._ring
        assert len(client._queue) == subscription.matches(event)
        hub.broadcast(LiveEventKind.RESYNC, b"{}")
        assert client._queue[-1].kind is LiveEventKind.RESYNC
    assert hub.clients == 0
    assert not hub._by_audience


async def test_the_first_event_is_sent_at_once_and_a_flood_is_collected() -> None:
    hub = Hub()
    with hub.subscribe(Subscription(ALL_SESSIONS), None) as (client, _):
        hub.broadcast(LiveEventKind.TURN, b"{}", "s", SessionRouting())
        began = time.monotonic()
        assert len(await client.take(5.0)) == 1
        first = time.monotonic() - began
        for _ in range(3):
            hub.broadcast(LiveEventKind.TURN, b"{}", "s", SessionRouting())
        assert len(await client.take(5.0)) == 3
        second = time.monotonic() - began
    assert first < live_hub.SEND_EVERY <= second


def test_clients_get_only_the_kinds_that_they_chose_and_always_a_resync() -> None:
    hub = Hub()
    routing = SessionRouting(team="north")
    chosen = Subscription(ALL_SESSIONS, kinds=frozenset({LiveEventKind.ALERT}))
    start = hub.position
    with hub.subscribe(chosen, None) as (client, _):
        for kind in (LiveEventKind.TURN, LiveEventKind.ALERT, LiveEventKind.SESSION):
            hub.broadcast(kind, b'{"a":1}', "s", routing)
        hub.mark_live()
        hub.mark_stale("2026-03-02T09:00:00Z")
        queued = [event.kind for event in client._queue]
    wanted = [LiveEventKind.ALERT, LiveEventKind.RESYNC, LiveEventKind.STALE]
    assert queued == wanted
    with hub.subscribe(chosen, start) as (_, missed):
        assert [event.kind for event in missed] == wanted


def test_an_event_is_encoded_once_and_without_names_for_those_who_may_not_see_them() -> None:
    hub = Hub()
    routing = SessionRouting(team="north", counsellors=["c0ffee"])
    start = hub.position
    [score] = process([turn(0), turn(1)]).session_scores[-1:]
    hub.broadcast_message(score, routing)
    everyone = Subscription(ALL_SESSIONS)
    with hub.subscribe(everyone, start) as (_, [event]):
        named = event.encoded(hub.epoch, deidentified=False)
        unnamed = event.encoded(hub.epoch, deidentified=True)
        assert event.encoded(hub.epoch, deidentified=False) is named
    assert named.startswith(f"id: {hub.epoch}-1-".encode())
    assert (b"c0ffee" in named, b"c0ffee" in unnamed) == (True, False)
    for encoded in (named, unnamed):
        data = msgspec.json.decode(encoded.split(b"data: ")[1])
        assert (data["session_id"], data["team"]) == (score.session_id, "north")
        assert encoded.endswith(b"\r\n\r\n")


def test_a_line_break_in_a_message_does_not_end_its_event() -> None:
    hub = Hub()
    start = hub.position
    hub.broadcast(LiveEventKind.TURN, b'{"a":\r\n1}', "s", SessionRouting())
    with hub.subscribe(Subscription(ALL_SESSIONS), start) as (_, missed):
        encoded = hub.encode(missed, Subscription(ALL_SESSIONS))
    assert encoded.count(b"\r\n") == 4
    assert b'data: {"a":1}\r\n' in encoded
