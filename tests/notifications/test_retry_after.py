"""A target that answers with Retry-After is left alone for that time, up to the longest wait."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from stream_app.notifications.connection_guard import parse_allowed
from stream_app.notifications.notification import (
    DeliveryFailed,
    DeliveryRejected,
    trial_notification,
)
from stream_app.notifications.rounds import Rounds
from stream_app.notifications.webhook import Webhook, retry_after

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
LONGEST = 0.6


class Asked(Rounds):
    """A target that fails once and asks for a pause."""

    def __init__(self, asks: float) -> None:
        super().__init__("desk", 0.001, LONGEST)
        self.asks = asks
        self.at: list[float] = []

    def round(self) -> int:
        self.at.append(time.monotonic())
        if len(self.at) == 1:
            raise DeliveryFailed("status 429", self.asks)
        self.stop()
        return 0


@pytest.mark.parametrize(("asks", "least"), [(0.3, 0.3), (40.0, LONGEST)])
def test_a_target_is_left_alone_as_long_as_it_asks(asks: float, least: float) -> None:
    rounds = Asked(asks)
    rounds.run()
    assert least <= rounds.at[1] - rounds.at[0] < least + 2


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("40", 40.0),
        (" 0 ", 0.0),
        ("9" * 400, float("inf")),
        (format_datetime(NOW + timedelta(seconds=40), usegmt=True), 40.0),
        (format_datetime(NOW - timedelta(seconds=40), usegmt=True), 0.0),
        ("Monday, 05-Jan-26 12:00:40 GMT", 40.0),
        ("", 0.0),
        ("-5", 0.0),
        ("soon", 0.0),
        ("\u00b2", 0.0),
        ("Mon, 99 Jan 2026 12:00:00 GMT", 0.0),
    ],
)
def test_seconds_and_dates_are_read_and_others_ignored(header: str, seconds: float) -> None:
    assert retry_after(header, NOW) == seconds


@contextmanager
def receiver(status: int, header: str) -> Iterator[str]:
    """The address of a server that answers every message like this."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.send_header("retry-after", header)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    ("status", "failure"),
    [(429, DeliveryFailed), (503, DeliveryFailed), (403, DeliveryRejected)],
)
def test_a_failed_webhook_says_what_the_target_asks_for(
    status: int, failure: type[DeliveryFailed]
) -> None:
    with receiver(status, "40") as url:
        channel = Webhook("desk", url, None, "", 5.0, parse_allowed(["127.0.0.1"]))
        with pytest.raises(failure, match=f"status {status}") as failed:
            channel.send(trial_notification("desk", NOW))
    assert type(failed.value) is failure
    assert failed.value.retry_after == 40.0
