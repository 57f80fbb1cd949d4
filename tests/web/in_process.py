"""Runs the web application in the test process, without a port or a broker."""

import asyncio
from typing import Any

import httpx
from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stream_app import bootstrap
from stream_app.web.services import Services
from tests.web.server import Web


class InProcessTransport(httpx.BaseTransport):
    """Passes requests to an ASGI application and returns complete responses.

    Of live streams, which are endless, it returns only the headers.
    """

    def __init__(self, app: FastAPI) -> None:
        self._app = httpx.ASGITransport(without_streams(app))

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return asyncio.run(self._ask(request))

    async def _ask(self, request: httpx.Request) -> httpx.Response:
        buffered = httpx.Request(
            request.method, request.url, headers=request.headers, content=request.read()
        )
        answer = await self._app.handle_async_request(buffered)
        body = await answer.aread()
        return httpx.Response(answer.status_code, headers=answer.headers.raw, content=body)


def without_streams(app: ASGIApp) -> ASGIApp:
    """The same application, but clients of event streams disconnect after the headers."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        disconnected = asyncio.Event()

        async def send_and_watch(message: Message) -> None:
            headers = dict(message.get("headers", ()))
            if headers.get(b"content-type", b"").startswith(b"text/event-stream"):
                disconnected.set()
            await send(message)

        async def receive_or_disconnect() -> Message:
            request = asyncio.ensure_future(receive())
            leaving = asyncio.ensure_future(disconnected.wait())
            await asyncio.wait((request, leaving), return_when=asyncio.FIRST_COMPLETED)
            leaving.cancel()
            if request.done():
                return request.result()
            request.cancel()
            return {"type": "http.disconnect"}

        await app(scope, receive_or_disconnect, send_and_watch)
        if disconnected.is_set():
            await send({"type": "http.response.body"})

    return wrapped


class InProcessWeb(Web):
    """Like ``Web``, without a process."""

    app: FastAPI

    @property
    def url(self) -> str:
        return "http://rapport.test"

    def anonymous_client(self, **options: Any) -> httpx.Client:
        return super().anonymous_client(transport=InProcessTransport(self.app), **options)

    def start(self) -> None:
        self.app = bootstrap.web(self.settings)

    def stop(self) -> None:
        services: Services = self.app.state.services
        services.close()
        super().stop()
