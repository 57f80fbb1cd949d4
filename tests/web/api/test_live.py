"""Live events: replay after Last-Event-ID, resync, broker outages, slow clients."""

import asyncio
import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from stream_app.core.session.batch import BatchResult
from stream_app.web.live.topic_reader import CHECK_SECONDS
from stream_app.worker.kafka import broker
from stream_app.worker.kafka.topics import declare_topics
from tests.store.batches import turn
from tests.web.server import Web

PATIENCE = 30.0


@dataclass
class Received:
    id: str | None
    event: str | None
    data: Any


class Stream:
    """An open stream that is read in a thread."""

    def __init__(self, response: httpx.Response) -> None:
        self._found: queue.Queue[Received] = queue.Queue()
        self.comments = 0
        threading.Thread(target=self._read, args=(response,), daemon=True).start()
        self.first_id = self.take().id

    def _read(self, response: httpx.Response) -> None:
        fields: dict[str, str] = {}
        try:
            for line in response.iter_lines():
                if line.startswith(":"):
                    self.comments += 1
                elif line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif fields:
                    data = json.loads(fields["data"]) if "data" in fields else None
                    self._found.put(Received(fields.get("id"), fields.get("event"), data))
                    fields = {}
        except (httpx.TransportError, httpx.StreamError):
            return

    def take(self) -> Received:
        return self._found.get(timeout=PATIENCE)

    def until(self, wanted: Callable[[Received], bool]) -> list[Received]:
        """Events up to the first that matches."""
        found = [self.take()]
        while not wanted(found[-1]):
            found.append(self.take())
        return found

    def sessions(self, wanted: set[str]) -> set[str]:
        """Sessions of events until all expected ones were seen, and for a second after."""
        seen: set[str] = set()
        while not wanted <= seen:
            seen.add(self.take().data["session_id"])
        with suppress(queue.Empty):
            while True:
                seen.add(self._found.get(timeout=1.0).data["session_id"])
        return seen

    def nothing_for(self, seconds: float) -> None:
        with pytest.raises(queue.Empty):
            pytest.fail(f"received {self._found.get(timeout=seconds)}")


@contextmanager
def open_stream(
    web: Web, name: str = "sue", last_id: str | None = None, **params: str
) -> Iterator[Stream]:
    headers = {"Last-Event-ID": last_id} if last_id else {}
    with (
        web.client(name) as client,
        client.stream("GET", "/live", params=params, headers=headers) as response,
    ):
        assert response.status_code == 200
        yield Stream(response)


def is_(kind: str) -> Callable[[Received], bool]:
    return lambda event: event.event == kind


def about(session_id: str) -> Callable[[Received], bool]:
    return lambda event: bool(event.data) and event.data.get("session_id") == session_id


def wait_for(condition: Callable[[], Any], what: str) -> None:
    give_up = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up, what
        time.sleep(0.1)


@pytest.fixture(scope="module")
def live(
    tmp_path_factory: pytest.TempPathFactory,
    own_topics: tuple[str, dict[str, Any]],
    changes: Callable[[], dict[str, Any]],
) -> Iterator[Web]:
    address, topics = own_topics
    web = Web(tmp_path_factory.mktemp("live"), address, {**topics, **changes()})
    asyncio.run(declare_topics(web.settings))
    try:
        web.start()
        with web.client() as client:
            wait_for(lambda: client.get("/me").json()["live"], "the topics are read")
        yield web
    finally:
        web.stop()


def session_of(web: Web, session_id: str, turns: int = 2, **facts: Any) -> BatchResult:
    """Commit a session to the database without publishing it."""
    return web.commit(*[turn(seq, session_id=session_id, **facts) for seq in range(turns)])


def test_scores_and_alerts_are_streamed_with_team_and_domain(live: Web) -> None:
    with open_stream(live, session="routed") as stream:
        live.publish(session_of(live, "routed", team="north", domain="counselling"))
        found: dict[str | None, Any] = {}
        while {"session", "turn", "alert"} - found.keys():
            event = stream.take()
            found[event.event] = event.data
    assert found["session"]["team"] == "north"
    assert found["session"]["domain"] == "counselling"
    assert found["session"]["type"] == "session_score"
    assert len(found["session"]["counsellors"]) == 1
    assert found["alert"]["team"] == "north"
    assert found["turn"]["seq"] in (0, 1)
    assert "That must have been hard" not in json.dumps(found)


def test_streams_contain_only_events_within_the_scope_and_filter(live: Web) -> None:
    cleo = "cleo@example.org"
    with ExitStack() as stack:
        streams = {
            name: stack.enter_context(open_stream(live, name)) for name in ("sam", "nora", "cleo")
        }
        filtered = stack.enter_context(
            open_stream(live, "sue", team="south", domain="peer-support")
        )
        live.publish(session_of(live, "of-north", team="north", domain="peer-support"))
        live.publish(session_of(live, "of-south", team="south", domain="counselling"))
        live.publish(
            session_of(live, "of-cleo", team="south", domain="peer-support", speaker_id=cleo)
        )
        live.publish(session_of(live, "last", team="north", speaker_id=cleo, domain="counselling"))
        expected = {
            "sam": {"of-south", "of-cleo"},
            "nora": {"of-north", "last"},
            "cleo": {"of-cleo", "last"},
        }
        for name, stream in streams.items():
            assert stream.sessions(expected[name]) == expected[name], name
        assert filtered.sessions({"of-cleo"}) == {"of-cleo"}


def test_a_stream_stays_live_after_batches(live: Web) -> None:
    """The embedded broker reports end offsets below the position; that is not a lost log."""
    with open_stream(live) as stream:
        for number in range(3):
            live.publish(session_of(live, f"batch-{number}", turns=20))
        assert stream.sessions({f"batch-{number}" for number in range(3)})
        stream.nothing_for(2.5 * CHECK_SECONDS)


def test_an_analysts_stream_has_no_pseudonyms(live: Web) -> None:
    with open_stream(live, "ana", session="plain") as stream:
        live.publish(session_of(live, "plain", team="north"))
        event = stream.until(is_("session"))[-1]
    assert event.data["counsellors"] == []


def test_the_ingest_role_may_not_open_a_stream(live: Web) -> None:
    with live.client("pump") as client:
        assert client.get("/live").status_code == 403


def test_missed_events_are_replayed_after_last_event_id(live: Web) -> None:
    with open_stream(live, session="missed") as stream:
        first = session_of(live, "missed", turns=2)
        live.publish(first)
        before = [stream.take() for _ in range(3)]
    with open_stream(live, session="missed", last_id=before[0].id) as again:
        assert [again.take().id for _ in range(2)] == [event.id for event in before[1:]]
    with open_stream(live, session="missed", after=str(before[1].id)) as page:
        assert page.take().id == before[2].id


def test_an_idle_stream_starts_with_an_id_to_resume_from(live: Web) -> None:
    with open_stream(live, session="quiet-start") as stream:
        start = stream.first_id
    live.publish(session_of(live, "quiet-start"))
    with open_stream(live, session="quiet-start", last_id=start) as again:
        assert again.take().data["session_id"] == "quiet-start"


@pytest.mark.parametrize("last_id", ["0badf00d-3", "nonsense", "-", "٣-٣", "9" * 90])
def test_an_unknown_last_event_id_gets_a_resync(live: Web, last_id: str) -> None:
    quoted = httpx.QueryParams({"after": last_id})
    with open_stream(live, **dict(quoted)) as stream:
        event = stream.take()
    assert (event.event, event.data) == ("resync", {})


def test_an_action_is_streamed_by_every_web_process(live: Web) -> None:
    episode = session_of(live, "acted", team="north").alerts[0].episode_id
    other = Web(live.folder, live.broker, live.changes)
    try:
        other.start()
        with other.client() as client:
            wait_for(lambda: client.get("/me").json()["live"], "the second process reads")
        with (
            open_stream(live, "nora", session="acted") as here,
            open_stream(other, "nora", session="acted") as there,
            open_stream(live, "sam", session="acted") as not_here,
            live.client("nora") as client,
        ):
            body = {"reason": "false-alarm", "note": "she was only tired"}
            answer = client.post(f"/alerts/{episode}/acknowledge", json=body)
            assert answer.status_code == 200, answer.text
            for stream in (here, there):
                event = stream.until(is_("alert-action"))[-1]
                assert event.data["episode_id"] == episode
                assert event.data["kind"] == "acknowledge"
                assert event.data["person"] == "nora"
                assert event.data["state"] == answer.json()["state"]
                assert "tired" not in json.dumps(event.data)
            here.nothing_for(1.0)
            not_here.nothing_for(0.1)
    finally:
        other.stop()


def test_a_slow_client_gets_a_resync_and_memory_stays_bounded(live: Web) -> None:
    """It reads nothing while more events are sent than the sockets and its queue can buffer."""
    narrow = httpx.HTTPTransport(socket_options=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)])
    with live.client(transport=narrow) as client, client.stream("GET", "/live") as response:
        scores = session_of(live, "flood", turns=30).turn_scores
        live.publish(BatchResult(turn_scores=scores * 250))
        with open_stream(live, session="after-flood") as quick:
            live.publish(session_of(live, "after-flood"))
            quick.take()
        stream = Stream(response)
        seen = stream.until(is_("resync"))
        here, marker = about("still-there"), session_of(live, "still-there")
        while not here(seen[-1]):  # the rest of the flood, on another partition, may swallow it
            live.publish(marker)
            seen += stream.until(lambda event: here(event) or is_("resync")(event))
    assert len(seen) < 250 * len(scores)


def test_pages_work_without_the_broker_and_streams_recover_when_it_returns(
    tmp_path: Path,
) -> None:
    port = broker.free_port()
    web = Web(tmp_path, f"127.0.0.1:{port}")
    session_of(web, "early", team="north")
    try:
        web.start()
        with web.client() as client, open_stream(web) as stream:
            assert client.get("/alerts").json()["items"]
            assert client.get("/me").json()["live"] is False
            for name in ("one", "two"):  # it starts, stops and loses its log, and starts again
                with broker.running(port):
                    asyncio.run(declare_topics(web.settings))
                    assert stream.until(is_("resync"))[-1].data == {}
                    web.publish(session_of(web, name))
                    stream.until(about(name))
                since = stream.until(is_("stale"))[-1].data["since"]
                assert datetime.fromisoformat(since).tzinfo is not None
                assert client.get("/alerts").status_code == 200
    finally:
        web.stop()


def test_the_process_stops_despite_open_streams(tmp_path: Path) -> None:
    web = Web(tmp_path)
    web.start()
    with open_stream(web):
        began = time.monotonic()
        web.stop()
    assert time.monotonic() - began < 14  # the process is killed after 15
