"""Limits the size of request bodies: FastAPI reads a body before it checks who sent it."""

from collections.abc import Collection
from typing import Final

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES: Final = 256 * 1024
"""Enough for a form with the longest note, every character escaped."""


class BodyLimit:
    """ASGI middleware that answers 413 to long bodies, except on ``exempt`` paths."""

    def __init__(self, app: ASGIApp, exempt: Collection[str] = ()) -> None:
        self._app = app
        self._exempt = exempt

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request, counting the bytes of its body."""
        if scope["type"] != "http" or scope["path"] in self._exempt:
            await self._app(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > MAX_BODY_BYTES:
                raise HTTPException(413, f"the body may have at most {MAX_BODY_BYTES} bytes")
            return message

        await self._app(scope, counted, send)
