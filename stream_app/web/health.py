"""How a web process is, for the probes."""

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from stream_app.errors import RapportError
from stream_app.store.repository import Store
from stream_app.web.live import Hub

PATIENCE: Final = 3.0
"""Seconds for the database to answer."""


class WebHealth:
    """Ready while the database answers; without the broker, pages still work.

    Asks in a thread and over a connection of its own: requests may have taken all others.
    """

    def __init__(self, store: Store, hub: Hub) -> None:
        self._store = store
        self._hub = hub
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="health")
        self._asked: Future[list[str]] | None = None

    def not_alive(self) -> list[str]:
        """Whoever answers is alive."""
        return []

    def not_ready(self) -> list[str]:
        """What keeps pages from being served."""
        try:
            self._store.ping()
        except RapportError as problem:
            return [f"store: {problem}"]
        return []

    async def asked(self) -> list[str]:
        """The same, without holding up the event loop; one question at a time."""
        if self._asked is None or self._asked.done():
            self._asked = self._thread.submit(self.not_ready)
        answer = asyncio.shield(asyncio.wrap_future(self._asked))
        try:
            return await asyncio.wait_for(answer, PATIENCE)
        except TimeoutError:
            return [f"store: no answer within {PATIENCE:.0f} s"]

    def live(self) -> dict[str, bool | int]:
        """Where live events stand; for information, not a reason to be unready."""
        return {"reading": self._hub.live, "clients": self._hub.clients}
