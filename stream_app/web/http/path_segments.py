"""Session ids as single path segments: a slash inside an id is written ``%2F``.

Servers decode paths before routing, so an encoded slash would otherwise split the segment.
"""

import re
from typing import Final
from urllib.parse import quote, unquote

from starlette.convertors import Convertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send

SESSION_ID: Final = "{session_id:segment}"
"""Path parameter for routes."""
_SLASH: Final = "\ufdd0"
"""Replaces encoded slashes during routing; a noncharacter that Unicode will never assign."""
_UNRESERVED: Final = re.compile("[A-Za-z0-9_.~-]*")
"""Ids that need no encoding, as most do."""
_ENCODED: Final = re.compile("%2f", re.IGNORECASE)


def path_segment(name: str) -> str:
    """Encode a name as one path segment.

    >>> path_segment("a/b?")
    'a%2Fb%3F'
    """
    return name if _UNRESERVED.fullmatch(name) else quote(name, safe="")


class _SegmentConvertor(Convertor[str]):
    """Decodes a path segment to the name it was encoded from."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return value.replace(_SLASH, "/")

    def to_string(self, value: str) -> str:
        return path_segment(value)


register_url_convertor("segment", _SegmentConvertor())


class EncodedSlashes:
    """ASGI middleware that keeps encoded slashes from splitting path segments."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request with its path re-encoded."""
        raw = scope.get("raw_path") or b""
        parts = _ENCODED.split(raw.decode("latin-1"))
        if len(parts) > 1:
            scope["path"] = _SLASH.join(map(unquote, parts))  # in place: metrics read the scope
        await self._app(scope, receive, send)
