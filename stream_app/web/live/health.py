"""Health of a web process, for the health probes."""

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from stream_app.errors import RapportError
from stream_app.store.stream.repository import Store
from stream_app.web.live.live_hub import Hub

TIMEOUT: Final = 3.0
"""Seconds that the database may take to answer."""


class WebHealth:
    """A web process is ready while the database answers; pages work without the broker.

    Uses its own thread and database connection, since requests may be using all others. If the
    latest request could not write, ``requests``, their connections, are tried, too.
    """

    def __init__(self, store: Store, hub: Hub, requests: Store | None = None) -> None:
        self._store = store
        self._requests = requests
        self._hub = hub
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="health")
        self._check: Future[list[str]] | None = None

    def not_alive(self) -> list[str]:
        """Always empty: a process that can answer the probe is alive."""
        return []

    def not_ready(self) -> list[str]:
        """Reasons why pages cannot be served; blocks until the database answers."""
        try:
            self._store.ping()
            if self._requests is not None and self._requests.cannot_write:
                self._requests.try_to_write()
        except RapportError as problem:
            return [f"store: {problem}"]
        return []

    def close(self) -> None:
        """Close the connection to the database."""
        self._store.close()

    async def check_ready(self) -> list[str]:
        """Like ``not_ready`` without blocking the event loop; concurrent calls share one check."""
        if self._check is None or self._check.done():
            self._check = self._thread.submit(self.not_ready)
        result = asyncio.shield(asyncio.wrap_future(self._check))
        try:
            return await asyncio.wait_for(result, TIMEOUT)
        except TimeoutError:
            return [f"store: no answer within {TIMEOUT:.0f} s"]

    def live(self) -> dict[str, bool | int]:
        """State of the live events, for information only: it does not affect readiness."""
        return {"reading": self._hub.live, "clients": self._hub.clients}
