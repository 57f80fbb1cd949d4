"""Slow clients and clients that read nothing are disconnected; others are served."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from stream_app.health_server import serve_probes
from stream_app.processes import web
from stream_app.settings import Settings
from stream_app.web.http import connection_timeouts
from stream_app.web.http.connection_timeouts import TimeoutProtocol
from stream_app.worker.batches.metrics import WorkerMetrics
from stream_app.worker.kafka.broker import free_port
from stream_app.worker.upkeep.health import Health, HealthLimits
from tests.conftest import _missing

TIMEOUT = 0.6
Send = Callable[[dict[str, Any]], Any]


class ShortTimeouts(TimeoutProtocol):
    """The same protocol with shorter deadlines."""

    headers_timeout = body_timeout = read_timeout = TIMEOUT


async def application(scope: dict[str, Any], receive: Callable[[], Any], send: Send) -> None:
    """Read the body and respond with its size, or with a large body; WebSockets echo."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] != "websocket.disconnect":
            if "text" in message:
                await send({"type": "websocket.send", "text": message["text"]})
        return
    if scope["type"] != "http":
        return
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(300 if scope["path"] == "/much" else 0):
        await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
    await send({"type": "http.response.body", "body": str(size).encode()})


@contextmanager
def serving(protocol: type[TimeoutProtocol], limit: int | None = None) -> Iterator[int]:
    """Serve the application with this protocol and limit of connections; yields the port."""
    chosen = free_port()
    config = uvicorn.Config(
        application,
        port=chosen,
        http=protocol,
        log_config=None,
        lifespan="off",
        limit_concurrency=limit,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield chosen
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(ShortTimeouts) as chosen:
        yield chosen


def closed_after(port: int, first: bytes, more: bytes = b"") -> float:
    """Seconds until the server closes a connection that keeps sending single bytes."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(first)
        client.settimeout(0.1)
        while time.monotonic() - began < 10:
            try:
                if client.recv(1000) == b"":
                    break
            except TimeoutError:
                if more:
                    client.sendall(more)
            except ConnectionError:
                break
        return time.monotonic() - began


@pytest.mark.parametrize(
    ("first", "more"),
    [
        (b"", b""),
        (b"GET / HTTP/1.1\r\nHost: a\r\n", b"X"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\n", b"x"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
)
def test_an_endless_request_is_closed(port: int, first: bytes, more: bytes) -> None:
    """Sending a byte every tenth of a second does not keep the connection open."""
    assert TIMEOUT * 0.9 < closed_after(port, first, more) < TIMEOUT + 3.0


def test_a_client_that_reads_nothing_is_disconnected(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(b"GET /much HTTP/1.1\r\nHost: a\r\n\r\n")
        time.sleep(TIMEOUT + 1.5)
        taken = 0
        try:
            while data := client.recv(1_000_000):
                taken += len(data)
        except ConnectionError:
            pass
    assert taken < 30_000_000


def test_a_client_within_the_deadlines_is_served(port: int) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        for _ in range(3):
            assert client.post("/", content=b"x" * 500_000).text == "500000"
            time.sleep(TIMEOUT / 2)
        assert len(client.get("/much").content) == 30_000_001

        def slowly() -> Iterator[bytes]:
            for _ in range(3):
                time.sleep(TIMEOUT / 5)
                yield b"y"

        assert client.post("/", content=slowly()).text == "3"


LIMIT = 20
KEPT_ALIVE = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
UNFINISHED = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx"


@pytest.fixture
def limited() -> Iterator[int]:
    with serving(TimeoutProtocol, LIMIT) as chosen:
        yield chosen


@contextmanager
def connections(port: int, count: int, first: bytes) -> Iterator[list[socket.socket]]:
    """This many connections that have sent these bytes and nothing since."""
    with ExitStack() as stack:
        opened = []
        for _ in range(count):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            one.sendall(first)
            opened.append(one)
        yield opened


@pytest.mark.parametrize("first", [b"", b"GET / HTTP/1.1\r\nHost: a\r\n", KEPT_ALIVE])
def test_idle_connections_do_not_use_up_the_limit(limited: int, first: bytes) -> None:
    with connections(limited, 3 * LIMIT, first) as idle:
        for path in ("/", "/healthz", "/readyz"):
            assert httpx.get(f"http://127.0.0.1:{limited}{path}").status_code == 200
        closed = sum(is_closed(one) for one in idle[:LIMIT])
    assert closed == LIMIT, "the longest idle ones were closed"


def is_closed(connection: socket.socket) -> bool:
    """Whether the server has closed the connection, after what it may have answered."""
    try:
        while connection.recv(1000):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


def test_requests_beyond_the_limit_are_refused_but_probes_are_answered(limited: int) -> None:
    with connections(limited, LIMIT, UNFINISHED):
        address = f"http://127.0.0.1:{limited}"
        wait_until = time.monotonic() + 10
        while httpx.get(f"{address}/").status_code != 503:
            assert time.monotonic() < wait_until
        assert httpx.get(f"{address}/healthz").status_code == 200
        assert httpx.get(f"{address}/readyz").status_code == 200
    with connections(limited, LIMIT, b""):
        assert httpx.get(f"{address}/").status_code == 200


def test_a_request_in_progress_is_not_closed_for_new_connections(limited: int) -> None:
    with connections(limited, 1, UNFINISHED) as [busy], connections(limited, 3 * LIMIT, b""):
        busy.sendall(b"x" * 8)
        assert busy.recv(1000).startswith(b"HTTP/1.1 200")


def test_rapport_web_uses_these_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(web.uvicorn, "run", lambda app, **options: given.update(options))
    made = FastAPI()
    made.state.services = None
    monkeypatch.setattr(web.bootstrap, "web", lambda *_: made)
    web.run(Settings())
    assert given["http"] is TimeoutProtocol
    assert given["limit_concurrency"] == connection_timeouts.MAX_CONNECTIONS


def test_a_stalled_health_probe_client_does_not_block_others() -> None:
    with (
        serve_probes("127.0.0.1", 0, Health(HealthLimits()), WorkerMetrics().registry) as port,
        socket.create_connection(("127.0.0.1", port)) as stalling,
    ):
        stalling.sendall(b"GET /heal")
        began = time.monotonic()
        assert httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
        assert time.monotonic() - began < 2.0


def test_a_websocket_outlives_the_deadlines_of_requests(port: int) -> None:
    if find_spec("websockets") is None:
        _missing("uvicorn serves WebSockets with the package websockets")
    upgrade = b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    key = b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(upgrade + key)
        assert client.recv(1000).startswith(b"HTTP/1.1 101")
        time.sleep(2.5 * TIMEOUT)
        client.sendall(b"\x81\x82\0\0\0\0Hi")  # a masked text frame
        assert client.recv(1000) == b"\x81\x02Hi"
