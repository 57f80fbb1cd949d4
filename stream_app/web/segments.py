"""Session ids as parts of paths: a slash in one is written ``%2F`` and does not end the part.

Servers hand paths over decoded, so that such a slash could not be told from one between two parts.
"""

import re
from typing import Final
from urllib.parse import quote, unquote

from starlette.convertors import Convertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send

SESSION: Final = "{session_id:segment}"
"""In the paths of routes."""
_SLASH: Final = "\ufdd0"
"""Stands for an encoded slash until the route is found; Unicode will never make it a character."""
_ENCODED: Final = re.compile("%2f", re.IGNORECASE)


def segment(name: str) -> str:
    """A name as one part of a path.

    >>> segment("a/b?")
    'a%2Fb%3F'
    """
    return quote(name, safe="")


class _Named(Convertor[str]):
    """Gives a part of a path back as the name it was made of."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return value.replace(_SLASH, "/")

    def to_string(self, value: str) -> str:
        return segment(value)


register_url_convertor("segment", _Named())


class EncodedSlashes:
    """ASGI middleware that keeps encoded slashes from ending a part of the path."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        raw = scope.get("raw_path") or b""
        parts = _ENCODED.split(raw.decode("latin-1"))
        if len(parts) > 1:
            scope["path"] = _SLASH.join(map(unquote, parts))  # in place: metrics read the scope
        await self._app(scope, receive, send)
