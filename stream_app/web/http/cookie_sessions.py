"""The signed cookie of the console, bound to the host whenever the console is served over HTTPS.

Browsers accept the prefix ``__Host-`` only for a secure cookie of exactly this host, so that
neither plain HTTP nor another host of the domain can set or replace it.
"""

from typing import Final

from starlette.middleware.sessions import SessionMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from stream_app.web.http.security import is_https

COOKIE: Final = "rapport"
SECURE_COOKIE: Final = f"__Host-{COOKIE}"


class CookieSessions:
    """ASGI middleware that provides ``request.session``; ``always_https``: by the settings."""

    def __init__(self, app: ASGIApp, key: str, max_age: int, *, always_https: bool) -> None:
        self._always_https = always_https
        self._plain, self._secure = (
            SessionMiddleware(
                app, key, name, max_age, path="/", same_site="strict", https_only=secure
            )
            for name, secure in ((COOKIE, False), (SECURE_COOKIE, True))
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request with the cookie that its connection allows."""
        secure = is_https(scope, self._always_https)
        await (self._secure if secure else self._plain)(scope, receive, send)
