"""Events over a WebSocket: who may open one, answers to each message, and limits."""

import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.websockets import WebSocketDisconnect

from stream_app.errors import BrokerUnavailable
from stream_app.store.accounts.people import IngestScope, People
from stream_app.store.accounts.roles import Right
from stream_app.store.database import tables
from stream_app.web import api
from stream_app.web.api.receiving import event_socket
from tests.store.batches import turn
from tests.store.reading import rows
from tests.web.api.test_ingest import unnumbered
from tests.web.api.topic import Topic
from tests.web.in_process import InProcessWeb
from tests.web.server import PERSONS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it prefers another HTTP client, which is not used here
    from starlette.testclient import TestClient, WebSocketDenialResponse, WebSocketTestSession

PATH = f"{api.PREFIX}/events/ws"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessWeb]:
    running = InProcessWeb(tmp_path_factory.mktemp("socket"))
    running.start()
    yield running
    running.stop()


def connect(web: InProcessWeb, token: str | None = None) -> WebSocketTestSession:
    headers = {"Authorization": f"Bearer {token or web.tokens['pump']}"}
    return TestClient(web.app).websocket_connect(PATH, headers=headers)


def ask(socket: WebSocketTestSession, *events: bytes, **more: Any) -> dict[str, Any]:
    head = "".join(f"{json.dumps(name)}:{json.dumps(value)}," for name, value in more.items())
    socket.send_bytes(b'{%s"events":[%s]}' % (head.encode(), b",".join(events)))
    return dict(socket.receive_json())


def numbers(answer: dict[str, Any]) -> list[int | None]:
    assert answer["status"] == 202, answer
    return [result["seq"] for result in answer["results"]]


def test_only_programs_with_the_right_may_open_it(web: InProcessWeb) -> None:
    status = {}
    for name in [person.name for person in PERSONS]:
        try:
            with connect(web, web.tokens[name]):
                status[name] = 101
        except WebSocketDenialResponse as denied:
            status[name] = denied.status_code
    assert status == {person.name: 403 for person in PERSONS} | {"pump": 101}
    without = People(web.store).create_token("pump", "none", rights=frozenset[Right]())
    for token, wanted in ((without, 403), ("rapport_made-up", 401)):
        with pytest.raises(WebSocketDenialResponse) as refused, connect(web, token):
            pass
        assert refused.value.status_code == wanted
        assert refused.value.json()["status"] == wanted
    with (
        pytest.raises(WebSocketDenialResponse) as refused,
        TestClient(web.app).websocket_connect(PATH),
    ):
        pass
    assert refused.value.headers["www-authenticate"] == "Bearer"
    details = [row["detail"] for row in rows(web.store, tables.audit)]
    assert any(each.startswith("403 WebSocket /api/v1/events/ws") for each in details)
    assert any(each.startswith("401 WebSocket /api/v1/events/ws") for each in details)


def test_each_message_is_answered_in_order_with_numbers(web: InProcessWeb, topic: Topic) -> None:
    with connect(web) as socket:
        for key in ("a", "b"):
            socket.send_bytes(b'{"key":"%s","events":[%s]}' % (key.encode(), unnumbered()))
        for key, seq in (("a", 0), ("b", 1)):
            answer = socket.receive_json()
            assert (answer["key"], numbers(answer)) == (key, [seq])
        assert numbers(ask(socket, unnumbered(), b"{}", unnumbered())) == [2, None, 3]
    assert topic.of("s")[0] == b'{"seq":0,' + unnumbered()[1:]
    with connect(web) as socket:
        assert numbers(ask(socket, unnumbered(), key="b")) == [1], "repeated after a reconnection"
    assert len(topic.of("s")) == 4


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("", 422),
        ("{", 422),
        ("[]", 422),
        ("zanzibar", 422),
        ('{"events":[]}', 422),
        ('{"events":[{}],"key":""}', 422),
        ('{"events":[{}],"key":"a b"}', 422),
        ('{"events":[{}],"key":7}', 422),
        ('{"events":[' + "{}," * 500 + "{}]}", 422),
        ('{"events":[' + "[" * 100_000, 422),
        ('{"events":[' + "1," * 200_000 + "1]}", 413),
    ],
)
def test_a_malformed_message_is_a_problem_and_the_connection_stays(
    web: InProcessWeb, topic: Topic, message: str, status: int
) -> None:
    with connect(web) as socket:
        socket.send_text(message)
        answer = socket.receive_json()
        assert (answer["status"], answer["problem"]["status"]) == (status, status)
        assert "zanzibar" not in str(answer)
        assert ask(socket, turn(session_id="after"))["accepted"] == 1


def test_a_message_of_which_nothing_is_accepted_has_a_result_for_each_event(
    web: InProcessWeb, topic: Topic
) -> None:
    cut = turn(session_id="cut", text="X").replace(b"X", rb"\ud83d")
    with connect(web) as socket:
        for _ in range(2):
            answer = ask(socket, cut, b"{}", key="cut")
            assert (answer["status"], answer["key"], answer["accepted"]) == (422, "cut", 0)
            assert [each["code"] for each in answer["results"]] == ["lone-surrogate", "schema"]
        answer = ask(socket, cut, turn(session_id="cut"))
        assert [each["code"] for each in answer["results"]] == ["lone-surrogate", None]
        assert answer["status"] == 202
    assert len(topic.of("cut")) == 2, "the place of the refused turn, then the mended turn"


def test_problems_have_the_types_of_the_api(web: InProcessWeb, topic: Topic) -> None:
    with connect(web) as socket:
        assert numbers(ask(socket, unnumbered(session_id="types"), key="k")) == [0]
        reused = ask(socket, unnumbered(session_id="types", text="other"), key="k")
        assert reused["problem"]["type"] == "urn:rapport:problem:key-reused"
        assert (reused["key"], reused["status"], reused["retry_after"]) == ("k", 422, None)
        topic.problem = BrokerUnavailable("away")
        away = ask(socket, unnumbered(session_id="types"), key="k2")
        assert (away["status"], away["retry_after"]) == (503, 5)
        topic.problem = None
        assert numbers(ask(socket, unnumbered(session_id="types"), key="k2")) == [1]


def test_the_tokens_limits_apply(web: InProcessWeb, topic: Topic) -> None:
    north = People(web.store).create_token("pump", "north", sends=IngestScope(team="north"))
    with connect(web, north) as socket:
        answer = ask(socket, unnumbered(session_id="n"), unnumbered(session_id="n", team="north"))
    assert [result["code"] for result in answer["results"]] == ["out-of-scope", None]


def test_size_idle_time_revoked_tokens_and_numbers_of_connections_are_limited(
    web: InProcessWeb, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closing_code(socket: WebSocketTestSession) -> int:
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_json()
        return closed.value.code

    with connect(web) as socket:
        socket.send_text(" " * (event_socket.MAX_BYTES + 1))
        assert closing_code(socket) == 1009
    with monkeypatch.context() as patch, connect(web) as socket:
        patch.setattr(event_socket, "ACCOUNT_CHECK_SECONDS", -1.0)
        assert ask(socket, turn(session_id="l"))["accepted"] == 1
        with web.store.transaction() as connection:
            tokens = tables.access_tokens
            connection.execute(tokens.delete().where(tokens.c.person == "pump"))
        socket.send_json({"events": [{}]})
        assert closing_code(socket) == 1008
    web.tokens["pump"] = People(web.store).create_token("pump", "new")
    with monkeypatch.context() as patch:
        patch.setattr(event_socket, "MAX_SOCKETS_PER_ACCOUNT", 1)
        with connect(web):
            with pytest.raises(WebSocketDenialResponse) as refused, connect(web):
                pass
            assert refused.value.status_code == 503
            assert refused.value.headers["retry-after"] == "5"
        with connect(web):
            pass
    with monkeypatch.context() as patch:
        patch.setattr(event_socket, "IDLE_SECONDS", 0.05)
        with connect(web) as socket:
            assert closing_code(socket) == 1001


def test_a_program_that_sends_too_fast_waits(
    web: InProcessWeb, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(event_socket.asyncio, "sleep", sleep)
    monkeypatch.setattr(event_socket, "EVENTS_PER_SECOND", 0.01)
    with connect(web) as socket:
        ask(socket, *[turn(session_id="fast")] * 3)
        ask(socket, turn(session_id="fast"))
    assert 200 < slept[0] <= 300
