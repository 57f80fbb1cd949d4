"""The application in this process: requests go to it without a port, and it has no broker."""

import asyncio
from typing import Any

import httpx
from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stream_app import bootstrap
from stream_app.web.services import Services
from tests.web.server import Web


class Inside(httpx.BaseTransport):
    """Hands requests to an application and waits for its whole answer.

    Of a live stream, which has no end, only the head is heard.
    """

    def __init__(self, app: FastAPI) -> None:
        self._app = httpx.ASGITransport(_leaving_streams(app))

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return asyncio.run(self._ask(request))

    async def _ask(self, request: httpx.Request) -> httpx.Response:
        asked = httpx.Request(
            request.method, request.url, headers=request.headers, content=request.read()
        )
        answer = await self._app.handle_async_request(asked)
        body = await answer.aread()
        return httpx.Response(answer.status_code, headers=answer.headers.raw, content=body)


def _leaving_streams(app: ASGIApp) -> ASGIApp:
    """The same application; whoever asked for a stream of events has left once it begins."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        left = asyncio.Event()

        async def hear(message: Message) -> None:
            headers = dict(message.get("headers", ()))
            if headers.get(b"content-type", b"").startswith(b"text/event-stream"):
                left.set()
            await send(message)

        async def say() -> Message:
            told = asyncio.ensure_future(receive())
            leaving = asyncio.ensure_future(left.wait())
            await asyncio.wait((told, leaving), return_when=asyncio.FIRST_COMPLETED)
            leaving.cancel()
            if told.done():
                return told.result()
            told.cancel()
            return {"type": "http.disconnect"}

        await app(scope, say, hear)
        if left.is_set():
            await send({"type": "http.response.body"})

    return answered


class InProcessWeb(Web):
    """The same accounts, database and clients as of a web process, without the process."""

    app: FastAPI

    @property
    def url(self) -> str:
        return "http://rapport.test"

    def visitor(self, **options: Any) -> httpx.Client:
        return super().visitor(transport=Inside(self.app), **options)

    def start(self) -> None:
        self.app = bootstrap.web(self.settings)

    def stop(self) -> None:
        services: Services = self.app.state.services
        services.store.close()
        super().stop()
