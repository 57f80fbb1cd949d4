"""Requests that send events continue their caller's trace; other requests are not traced."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from stream_app import bootstrap
from stream_app.errors import BrokerUnavailable
from stream_app.settings import Settings
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.tracing.otlp import OtlpTracing
from stream_app.tracing.port import OFF, Tracing
from tests.store import databases
from tests.store.batches import prepare, turn
from tests.tracing.collector import Collector, collecting

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = {"traceparent": f"00-{TRACE_ID}-00f067aa0ba902b7-01", "baggage": "person=nora"}
SERVER, PRODUCER = 2, 4
ROUTE = "/api/v1/events"


class Api:
    """The application, with a publisher that keeps what it is given."""

    def __init__(self, app: FastAPI, token: str) -> None:
        self.app = app
        self._transport = httpx.ASGITransport(app)
        self._token = token
        self.sent: list[dict[str, bytes]] = []
        self.available = True
        app.state.services.publisher.send = self._send

    async def _send(self, topic: str, key: bytes, value: bytes, headers: Any = ()) -> Any:
        if not self.available:
            raise BrokerUnavailable("no Kafka broker can be reached; try again later")
        self.sent.append(dict(headers))
        future = asyncio.get_running_loop().create_future()
        future.set_result(httpx.Request("GET", "http://x"))
        future.result().__dict__.update(topic=topic, partition=0, offset=len(self.sent))
        return future

    async def request(self, method: str, path: str, headers: Any, *events: bytes) -> int:
        own = [("authorization", f"Bearer {self._token}"), ("content-type", "application/json")]
        async with httpx.AsyncClient(
            transport=self._transport, base_url="http://rapport.test"
        ) as client:
            content = b"[" + b",".join(events) + b"]"
            answer = await client.request(method, path, headers=own + headers, content=content)
        return answer.status_code


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        yield collector


@pytest.fixture
def new_api(tmp_path: Path) -> Iterator[Callable[[Tracing], Api]]:
    url = databases.sqlite(tmp_path / "rapport.db")
    store = prepare(databases.open_store(url))
    people = People(store)
    people.add(Person("pump", PersonRole.INGEST), None)
    token = people.create_token("pump", "test")
    changes = {"database_url": SecretStr(url), **databases.keys(url)}
    apps: list[FastAPI] = []

    def new(tracing: Tracing) -> Api:
        apps.append(bootstrap.web(Settings().model_copy(update=changes), tracing))
        return Api(apps[-1], token)

    yield new
    for app in apps:
        app.state.services.close()
    store.close()


async def test_a_callers_trace_reaches_the_records(
    new_api: Callable[[Tracing], Api], collector: Collector
) -> None:
    tracing = OtlpTracing("rapport-web", "group")
    api = new_api(tracing)
    caller = list(CALLER.items())
    assert await api.request("POST", ROUTE, caller, turn(), turn(1)) == 202
    assert await api.request("GET", "/api/v1/sessions/zanzibar", caller) == 403
    tracing.close()
    server, sending = sorted(collector.spans, key=lambda span: span.kind)
    assert (server.name, server.kind, server.trace_id) == (f"POST {ROUTE}", SERVER, TRACE_ID)
    assert server.attributes["http.route"] == ROUTE
    assert server.attributes["http.response.status_code"] == 202
    assert (sending.name, sending.kind) == ("send dialogue.turns", PRODUCER)
    assert (sending.trace_id, sending.parent_id) == (TRACE_ID, server.span_id)
    assert sending.attributes["messaging.batch.message_count"] == 2
    assert len(api.sent) == 2
    assert all(sending.is_parent_in(headers) for headers in api.sent)
    assert {name for headers in api.sent for name in headers} == {"traceparent"}
    assert "zanzibar" not in repr(collector.spans)
    assert "nora" not in repr(collector.spans)


@pytest.mark.parametrize(
    "headers",
    [
        [("traceparent", "")],
        [("traceparent", "0" * 10_000)],
        [("traceparent", b"\xff\xfe")],
        [("traceparent", CALLER["traceparent"]), ("traceparent", "x")],
        [("traceparent", "00-" + "0" * 32 + "-00f067aa0ba902b7-01"), ("tracestate", b"\xff" * 900)],
    ],
)
async def test_malformed_headers_do_not_disturb_a_request(
    new_api: Callable[[Tracing], Api], collector: Collector, headers: Any
) -> None:
    tracing = OtlpTracing("rapport-web", "group")
    api = new_api(tracing)
    assert await api.request("POST", ROUTE, headers, turn()) == 202
    tracing.close()
    [sent] = api.sent
    assert collector.named("send dialogue.turns")[0].is_parent_in(sent)


async def test_a_broker_that_is_away_is_an_error_of_the_request(
    new_api: Callable[[Tracing], Api], collector: Collector
) -> None:
    tracing = OtlpTracing("rapport-web", "group")
    api = new_api(tracing)
    api.available = False
    assert await api.request("POST", ROUTE, [], turn()) == 503
    tracing.close()
    [server] = [span for span in collector.spans if span.kind == SERVER]
    assert (server.failed, server.attributes["http.response.status_code"]) == (True, 503)


async def test_spans_are_sent_when_the_application_stops(
    new_api: Callable[[Tracing], Api], collector: Collector
) -> None:
    api = new_api(OtlpTracing("rapport-web", "group"))
    async with api.app.router.lifespan_context(api.app):
        assert await api.request("POST", ROUTE, [], turn()) == 202
    assert {span.name for span in collector.spans} == {f"POST {ROUTE}", "send dialogue.turns"}
    api.app.state.services.tracing.close()


async def test_without_tracing_records_have_no_headers(new_api: Callable[[Tracing], Api]) -> None:
    api = new_api(OFF)
    assert await api.request("POST", ROUTE, list(CALLER.items()), turn()) == 202
    assert api.sent == [{}]
