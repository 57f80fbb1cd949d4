"""Audits requests that were refused with 401, with a bound on the number of entries.

A flood of requests without a valid sign-in cannot fill the audit trail: a process writes one entry
per address and token in a minute, at most ``PER_ADDRESS`` for an address and ``IN_ALL`` together.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from starlette.requests import HTTPConnection

from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import TOKEN_PREFIX
from stream_app.store.stream.repository import Store

SECONDS: Final = 60.0
PER_ADDRESS: Final = 5
IN_ALL: Final = 30
SHOWN_CHARS: Final = 4
"""Characters shown of a token's 43: enough to recognise a known one, too few to guess it."""
NOBODY: Final = "(not signed in)"
"""The person of the entries."""


class UnknownSenders:
    """Records the refused requests of one process."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._since = clock()
        self._seen: set[tuple[str, str]] = set()
        self._by_address: Counter[str] = Counter()

    def record(self, request: HTTPConnection) -> None:
        """Record a request without a valid sign-in or token, unless there are too many."""
        address = request.client.host if request.client else "unknown"
        token = _shown(request.headers.get("authorization", ""))
        if self._is_new(address, token):
            route = getattr(request.scope.get("route"), "path_format", "")
            path = f"{request.scope.get('root_path', '')}{route}"
            method = request.scope.get("method", "WebSocket")
            detail = f"401 {method} {path} from {address}, {token}"
            audit.record(self._store, NOBODY, AuditAction.REFUSED, detail=detail)

    def _is_new(self, address: str, token: str) -> bool:
        with self._lock:
            now = self._clock()
            if now - self._since >= SECONDS:
                self._since = now
                self._seen.clear()
                self._by_address.clear()
            full = len(self._seen) >= IN_ALL or self._by_address[address] >= PER_ADDRESS
            if full or (address, token) in self._seen:
                return False
            self._seen.add((address, token))
            self._by_address[address] += 1
            return True


def _shown(authorization: str) -> str:
    """What the entry says about the credentials; never a whole token.

    >>> _shown("Bearer rapport_abcdefghijklmnopqrstuvwxyz0123456789_ABCDEF")
    'token rapport_abcd…'
    >>> _shown(""), _shown("Basic c3VlOnNlY3JldA==")
    ('no token', 'other credentials')
    """
    if not authorization:
        return "no token"
    token = authorization.partition(" ")[2].strip()
    secret = token.removeprefix(TOKEN_PREFIX)
    if token == secret or len(secret) < 10 * SHOWN_CHARS or not token.isascii():
        return "other credentials"
    return f"token {TOKEN_PREFIX}{secret[:SHOWN_CHARS]}…"
