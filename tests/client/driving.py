"""Both clients behind one interface, over a transport that loses requests and answers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from fastapi import FastAPI

from stream_app.client import (
    AsyncRapportClient,
    Batching,
    EventResult,
    RapportClient,
    Retries,
    Session,
    TurnScores,
)
from stream_app.client.events import Sendable
from tests.web.in_process import InProcessTransport

QUICK = Retries(attempts=5, seconds=30, first_wait=0.001, longest_wait=0.002)
Fault = Callable[[httpx.Request, httpx.Response | None], httpx.Response | None]
"""Called before a request with None, then with its answer; may raise or return another answer."""


def request_lost(request: httpx.Request, response: httpx.Response | None) -> None:
    raise httpx.ConnectTimeout("lost", request=request)


def answer_lost(request: httpx.Request, response: httpx.Response | None) -> None:
    if response is not None:
        raise httpx.ReadTimeout("lost", request=request)


def answered(status: int, **headers: str) -> Fault:
    """A proxy answers."""
    return lambda request, _: httpx.Response(
        status, headers=headers, text="<html>", request=request
    )


@dataclass
class Network(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """``faults``: of the next requests, then none. ``seen``: all requests."""

    app: FastAPI
    faults: list[Fault | None] = field(default_factory=list)
    seen: list[httpx.Request] = field(default_factory=list)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._send(request, InProcessTransport(self.app).handle_request)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await asyncio.to_thread(self.handle_request, await _sync(request))

    def _send(
        self, request: httpx.Request, send: Callable[[httpx.Request], httpx.Response]
    ) -> httpx.Response:
        self.seen.append(request)
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None and (early := fault(request, None)) is not None:
            return early
        response = send(request)
        if fault is not None:
            fault(request, response)
        return response


async def _sync(request: httpx.Request) -> httpx.Request:
    content = await request.aread()
    return httpx.Request(request.method, request.url, headers=request.headers, content=content)


class Driver:
    """A client of either kind, with the interface of the asynchronous one."""

    def __init__(self, client: RapportClient | AsyncRapportClient) -> None:
        self._client = client

    async def _call(self, name: str, *args: Any, **options: Any) -> Any:
        method = getattr(self._client, name)
        if isinstance(self._client, AsyncRapportClient):
            return await method(*args, **options)
        return await asyncio.to_thread(method, *args, **options)

    async def send(self, *events: Sendable, key: str | None = None) -> list[EventResult]:
        return list(await self._call("send", *events, key=key))

    async def queue(self, event: Sendable) -> "asyncio.Future[EventResult]":
        done = await self._call("queue", event)
        return done if isinstance(done, asyncio.Future) else asyncio.wrap_future(done)

    async def flush(self) -> None:
        await self._call("flush")

    async def close(self) -> None:
        await self._call("close")

    async def session(self, session_id: str) -> Session:
        found: Session = await self._call("session", session_id)
        return found

    async def turns(self, session_id: str) -> list[TurnScores]:
        if isinstance(self._client, AsyncRapportClient):
            return [each async for each in self._client.turns(session_id)]
        client = self._client
        return await asyncio.to_thread(lambda: list(client.turns(session_id)))

    async def sessions(self, **filters: str) -> list[Session]:
        if isinstance(self._client, AsyncRapportClient):
            return [each async for each in self._client.sessions(**filters)]
        client = self._client
        return await asyncio.to_thread(lambda: list(client.sessions(**filters)))


@asynccontextmanager
async def driving(
    kind: str, network: Network, token: str, retries: Retries = QUICK, **batching: Any
) -> AsyncIterator[Driver]:
    """A client of this kind, closed at the end."""
    options: dict[str, Any] = {"retries": retries, "batching": Batching(**batching)}
    url = "http://rapport.test"
    made = (RapportClient if kind == "sync" else AsyncRapportClient)(
        url, token, transport=network, **options
    )
    driver = Driver(made)
    try:
        yield driver
    finally:
        await driver.close()
