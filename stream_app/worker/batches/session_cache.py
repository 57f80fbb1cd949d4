"""The session cache: it is cleared after rebalances and failures, as the database is the truth."""

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from stream_app.core.session.session_state import Versioned

CACHED_SESSIONS: Final = 20_000
"""States that a worker keeps in memory, at most."""


class SessionCache:
    """The most recently used session states, at most ``limit``."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._states: OrderedDict[str, Versioned] = OrderedDict()
        self._invalid = threading.Event()

    def __len__(self) -> int:
        return len(self._states)

    def get(self, session_id: str) -> Versioned | None:
        """Return the cached state, if any."""
        found = self._states.get(session_id)
        if found is not None:
            self._states.move_to_end(session_id)
        return found

    def peek(self, session_id: str) -> Versioned | None:
        """Like ``get``, from any thread and without counting as a use."""
        return self._states.get(session_id)

    def put(self, states: dict[str, Versioned]) -> None:
        """Cache these states and evict the least recently used ones."""
        for session_id, versioned in states.items():
            self._states[session_id] = versioned
            self._states.move_to_end(session_id)
        while len(self._states) > self._limit:
            self._states.popitem(last=False)

    def discard(self, session_ids: Iterable[str]) -> None:
        """Evict these."""
        for session_id in session_ids:
            self._states.pop(session_id, None)

    def session_ids(self) -> list[str]:
        """The sessions whose states are cached."""
        return list(self._states)

    def clear(self) -> None:
        """Evict everything."""
        self._states.clear()

    def invalidate(self) -> None:
        """Request that the cache is cleared before the next batch; callable from any thread."""
        self._invalid.set()

    def clear_if_invalid(self) -> None:
        """Clear the cache if ``invalidate`` was called."""
        if self._invalid.is_set():
            self._invalid.clear()
            self.clear()
