"""Security headers of every response: browsers may load and run only the console's own files."""

from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with no-referrer, a form's Origin would be null
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
HTTPS_ONLY: Final = "max-age=31536000"
"""Strict-Transport-Security: for a year, browsers open this host by HTTPS only."""
STATIC: Final = "/static/"


def is_https(scope: Scope, always: bool) -> bool:
    """Whether the browser uses HTTPS: by the settings, or by the proxy's X-Forwarded-Proto."""
    return always or scope.get("scheme") == "https"


class SecurityHeaders:
    """ASGI middleware that adds security headers and forbids caching, except of static files."""

    def __init__(self, app: ASGIApp, *, always_https: bool) -> None:
        self._app = app
        self._always_https = always_https

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request and add the headers to its response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                caching = "max-age=3600" if scope["path"].startswith(STATIC) else "no-store"
                headers.setdefault("Cache-Control", caching)
                if is_https(scope, self._always_https):
                    headers.setdefault("Strict-Transport-Security", HTTPS_ONLY)
            await send(message)

        await self._app(scope, receive, with_headers)
