"""What a trusted proxy says about a request: the browser's address, HTTPS, the signed-in account.

Headers of other addresses are ignored, because any client can send them.
"""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Final

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

PEER: Final = "rapport.peer"
"""Key in the scope: the address of the other end of the connection, whatever headers say."""
Networks = Sequence[IPv4Network | IPv6Network]


class ProxyHeaders:
    """ASGI middleware that applies ``X-Forwarded-For`` and ``-Proto`` of these proxies."""

    def __init__(self, app: ASGIApp, proxies: Networks) -> None:
        self._app = ProxyHeadersMiddleware(
            app,  # type: ignore[arg-type]  # uvicorn has types of its own for ASGI
            [str(each) for each in proxies],
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request with the client and the scheme that the proxy stated."""
        client = scope.get("client")
        scope[PEER] = client[0] if client else None
        await self._app(scope, receive, send)  # type: ignore[arg-type]


def stated_account(request: Request, header: str | None, proxies: Networks) -> str | None:
    """The account that a trusted proxy names in the header; None without exactly one."""
    if header is None or not _is_one_of(request.scope.get(PEER), proxies):
        return None
    named = request.headers.getlist(header)
    return named[0].strip() or None if len(named) == 1 else None


def _is_one_of(peer: str | None, proxies: Networks) -> bool:
    try:
        address = ip_address(peer or "")
    except ValueError:  # a socket file, or no address
        return False
    return any(address in network for network in proxies)
