"""Puts deliveries of one conversation into the order of time, within a bounded wait.

Services deliver webhooks beside each other, so that two messages of one second may arrive in either
order. Each delivery waits for those that were said before it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime
from typing import Final, TypeVar

from stream_app.client.events import Sendable

T = TypeVar("T")

WAIT: Final = 1.0
"""Seconds that a delivery waits for earlier ones; services wait 3 s or more for an answer."""


class TimeOrder:
    """Runs what is handed in for a conversation one after the other, by time.

    ``wait``: seconds in which an earlier message may still overtake a later one; 0 keeps the order
    of arrival.
    """

    def __init__(self, wait: float = WAIT) -> None:
        self._wait = wait
        self._waiting: dict[str, list[tuple[datetime, int]]] = {}
        self._changed = asyncio.Condition()
        self._arrived = 0

    async def run(self, events: Sequence[Sendable], work: Callable[[], Awaitable[T]]) -> T:
        """Wait, then run ``work`` once nothing that was said earlier waits in these sessions.

        Args:
            events: what the delivery contains, at least one.
            work: sends it.
        """
        self._arrived += 1
        mine = (min(event.occurred_at for event in events), self._arrived)
        sessions = {event.session_id for event in events}
        for session_id in sessions:
            self._waiting.setdefault(session_id, []).append(mine)
        try:
            await asyncio.sleep(self._wait)
            async with self._changed:
                await self._changed.wait_for(lambda: self._is_first(sessions, mine))
            return await work()
        finally:
            for session_id in sessions:
                self._waiting[session_id].remove(mine)
                if not self._waiting[session_id]:
                    del self._waiting[session_id]
            async with self._changed:
                self._changed.notify_all()

    def _is_first(self, sessions: Collection[str], mine: tuple[datetime, int]) -> bool:
        return all(min(self._waiting[session_id]) == mine for session_id in sessions)
