"""Channels connect only to public addresses, or to those that the setting allows."""

import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any

import pytest
from pydantic import ValidationError

from stream_app.bootstrap import notifier_process
from stream_app.notifications.apprise_channel import AppriseChannel
from stream_app.notifications.connection_guard import (
    AddressRefused,
    guarded,
    kind_of,
    parse_allowed,
)
from stream_app.notifications.notification import Channel, DeliveryFailed, single
from stream_app.notifications.targets import Target
from stream_app.notifications.webhook import Webhook
from stream_app.settings import Settings
from tests.notifications.alerts import FIRING

pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated")  # a plugin of Apprise's
NOBODY = parse_allowed([])
PUBLIC = "93.184.215.14"
KINDS = ["webhook", "apprise"]


class Inner:
    """A server on loopback that counts requests, and redirects if told where to."""

    def __init__(self) -> None:
        inner = self
        self.requests = 0
        self.location: str | None = None

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                inner.requests += 1
                self.rfile.read(int(self.headers["content-length"] or 0))
                self.send_response(307 if inner.location else 204)
                if inner.location:
                    self.send_header("Location", inner.location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Suppress the default log."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def inner() -> Iterator[Inner]:
    server = Inner()
    yield server
    server.close()


@pytest.fixture
def elsewhere() -> Iterator[Inner]:
    server = Inner()
    yield server
    server.close()


def channel(kind: str, host: str, port: int, allowed: list[str] | None = None) -> Channel:
    if kind == "webhook":
        url = f"http://{host}:{port}/zanzibar"
        return Webhook("desk", url, None, "", 2.0, parse_allowed(allowed or []))
    url = f"json://{host}:{port}/zanzibar?redirect=yes"
    return AppriseChannel("desk", url, "", 5.0, parse_allowed(allowed or []))


def answers(monkeypatch: pytest.MonkeyPatch, *addresses: list[str]) -> list[str]:
    """Resolve every name to these lists of addresses in turn, the last one from then on."""
    original, asked = socket.getaddrinfo, []
    left = list(addresses)

    def resolve(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if host != "hooks.example.org":
            return original(host, port, *args, **kwargs)
        sys.audit("socket.getaddrinfo", host, port, 0, 0, 0)
        asked.append(host)
        found = left.pop(0) if len(left) > 1 else left[0]
        kind = socket.SOCK_STREAM
        return [(socket.AF_INET, kind, 6, "", (address, port)) for address in found]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("127.0.0.1", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::127.0.0.1", "loopback"),
        ("64:ff9b::7f00:1", "loopback"),
        ("2002:7f00:1::", "loopback"),
        ("169.254.169.254", "link-local"),
        ("fe80::1", "link-local"),
        ("::ffff:169.254.169.254", "link-local"),
        ("10.0.0.1", "private"),
        ("172.16.0.1", "private"),
        ("192.168.1.1", "private"),
        ("100.64.0.1", "private"),
        ("fd00::1", "private"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("0.0.0.0", "unspecified"),
        ("::", "unspecified"),
        (PUBLIC, None),
        ("2606:2800:21f:cb07::1", None),
    ],
)
def test_addresses_that_are_not_public_have_a_kind(text: str, kind: str | None) -> None:
    assert kind_of(ip_address(text)) == kind


@pytest.mark.parametrize(
    ("kind", "host"),
    [
        *((kind, host) for kind in KINDS for host in ("127.0.0.1", "localhost")),
        *(("webhook", host) for host in ("127.1", "0x7f000001", "[::ffff:127.0.0.1]")),
    ],
)
def test_loopback_is_refused_in_every_spelling(inner: Inner, kind: str, host: str) -> None:
    with pytest.raises(DeliveryFailed, match=r"loopback.*its `allow` lists") as refused:
        channel(kind, host, inner.port).send(single(FIRING))
    assert "zanzibar" not in str(refused.value)
    assert host not in str(refused.value)
    assert inner.requests == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("allowed", [["127.0.0.0/8"], ["127.0.0.1"], ["10.0.0.0/8", "LOCALHOST."]])
def test_an_allowed_network_or_host_is_reached(inner: Inner, kind: str, allowed: list[str]) -> None:
    host = "localhost" if "LOCALHOST." in allowed else "127.0.0.1"
    channel(kind, host, inner.port, allowed).send(single(FIRING))
    assert inner.requests == 1


@pytest.mark.parametrize("kind", KINDS)
def test_one_internal_address_among_public_ones_is_refused(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    answers(monkeypatch, [PUBLIC, "127.0.0.1"])
    with pytest.raises(DeliveryFailed, match="loopback"):
        channel(kind, "hooks.example.org", inner.port).send(single(FIRING))
    assert inner.requests == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_that_changes_its_address_after_the_check_is_refused(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    asked = answers(monkeypatch, [PUBLIC], ["127.0.0.1"])
    with pytest.raises(DeliveryFailed, match="loopback"):
        channel(kind, "hooks.example.org", inner.port).send(single(FIRING))
    assert len(asked) > 1
    assert inner.requests == 0


@pytest.mark.parametrize("kind", KINDS)
def test_redirects_are_not_followed(inner: Inner, elsewhere: Inner, kind: str) -> None:
    inner.location = f"http://127.0.0.1:{elsewhere.port}/"
    with pytest.raises(DeliveryFailed):
        channel(kind, "127.0.0.1", inner.port, ["127.0.0.0/8"]).send(single(FIRING))
    assert (inner.requests, elsewhere.requests) == (1, 0)


def test_a_name_that_the_socket_would_resolve_itself_is_refused() -> None:
    with guarded(NOBODY) as guard, socket.socket() as opened, pytest.raises(AddressRefused):
        opened.connect(("localhost", 9))
    assert guard.refusal is not None


def test_other_threads_and_later_connections_are_not_guarded(inner: Inner) -> None:
    reached: list[Any] = []

    def connect() -> None:
        with socket.create_connection(("127.0.0.1", inner.port), 2.0) as opened:
            reached.append(opened.getpeername())

    with guarded(NOBODY):
        other = threading.Thread(target=connect)
        other.start()
        other.join()
        with pytest.raises(AddressRefused):
            connect()
    connect()
    assert len(reached) == 2


def test_a_target_may_have_what_it_allows_itself(inner: Inner) -> None:
    def send(*allowed: str) -> None:
        url = f"http://127.0.0.1:{inner.port}/"
        target = Target.model_validate(
            {"name": "desk", "kind": "webhook", "url": url, "allow": list(allowed)},
            context={"environment": {}},
        )
        notifier_process.channel(Settings(), target).send(single(FIRING))

    with pytest.raises(DeliveryFailed, match="loopback"):
        send()
    send("127.0.0.1")
    assert inner.requests == 1
    with pytest.raises(ValidationError, match=r"10\.0\.0\.0/99 is neither a network"):
        send("10.0.0.0/99")
