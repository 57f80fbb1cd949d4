"""The most that a request may carry: FastAPI reads a body before it asks who sends it."""

from collections.abc import Collection
from typing import Final

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES: Final = 256 * 1024
"""The longest note, every character escaped, and a form around it."""


class BoundedBodies:
    """ASGI middleware that answers 413; ``but``: paths that count for themselves."""

    def __init__(self, app: ASGIApp, but: Collection[str] = ()) -> None:
        self._app = app
        self._but = but

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with a body that ends."""
        if scope["type"] != "http" or scope["path"] in self._but:
            await self._app(scope, receive, send)
            return
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MOST_BYTES:
                raise HTTPException(413, f"a request has {MOST_BYTES} bytes at most")
            return message

        await self._app(scope, counted, send)
