"""Closes connections of slow clients.

uvicorn itself closes only connections that are idle between requests. It has no timeout for the
rest of a request, nor for a client that does not read its response.
"""

import asyncio
import heapq
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_TIMEOUT: Final = 10.0
"""Seconds from the opening of a connection, or the first byte of a request, to its last header."""
BODY_TIMEOUT: Final = 60.0
"""Seconds from the last header to the end of the body."""
READ_TIMEOUT: Final = 60.0
"""Seconds for which a client may leave a pending response unread."""
MAX_CONNECTIONS: Final = 1000
"""Most connections of a process. Idle ones are closed for new ones; if none is idle: 503."""
PROBES: Final = ("/healthz", "/readyz")
"""Answered at any load: a supervisor would restart a process that is only busy."""


class TimeoutProtocol(H11Protocol):
    """HTTP/1.1 with a deadline for each phase of a request: headers, body, reading the response.

    Connections without a request give way to new ones, so that they cannot use up the limit.
    """

    headers_timeout = HEADERS_TIMEOUT
    body_timeout = BODY_TIMEOUT
    read_timeout = READ_TIMEOUT

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._request_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None
        self._phase: object = None
        self._idle_since = self.loop.time()

    @property
    def limit_concurrency(self) -> int | None:
        """The number of connections from which uvicorn answers 503; None for probes."""
        return None if self.scope["path"] in PROBES else self._limit

    @limit_concurrency.setter
    def limit_concurrency(self, limit: int | None) -> None:
        self._limit = limit

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline for the first request's headers."""
        super().connection_made(transport)
        self._make_room()
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        """Restart the deadline if the next phase has begun."""
        super().data_received(data)
        self._set_deadline()

    def pause_writing(self) -> None:
        """Start the deadline for a client that has stopped reading."""
        super().pause_writing()
        self._read_timer = self.loop.call_later(self.read_timeout, self._abort)

    def resume_writing(self) -> None:
        """Cancel that deadline: the client is reading again."""
        super().resume_writing()
        self._read_timer = _cancel(self._read_timer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel all deadlines."""
        self._request_timer = _cancel(self._request_timer)
        self._read_timer = _cancel(self._read_timer)
        super().connection_lost(exc)

    def _set_deadline(self) -> None:
        """Set the deadline of the current phase; bytes within a phase do not extend it.

        Data that arrives during a response is handled after it. A WebSocket has pings and limits of
        its own.
        """
        if self.transport.get_protocol() is not self:
            self._request_timer = _cancel(self._request_timer)
            return
        phase = self.conn.their_state
        if phase is self._phase and self._request_timer is not None:
            return
        self._phase, self._request_timer = phase, _cancel(self._request_timer)
        self._idle_since = self.loop.time()
        timeout = {h11.IDLE: self.headers_timeout, h11.SEND_BODY: self.body_timeout}.get(phase)
        if timeout is not None:
            self._request_timer = self.loop.call_later(timeout, self._abort)

    def _make_room(self) -> None:
        """Close the longest idle connections while there are as many as the limit."""
        too_many = len(self.connections) + 1 - self._limit if self._limit is not None else 0
        if too_many <= 0:
            return
        idle = [
            each
            for each in self.connections
            if isinstance(each, TimeoutProtocol) and each is not self and each.is_idle
        ]
        for each in heapq.nsmallest(too_many, idle, key=lambda one: one._idle_since):  # noqa: SLF001
            self.connections.discard(each)  # at once; its transport closes a moment later
            each._abort()  # noqa: SLF001

    @property
    def is_idle(self) -> bool:
        """Whether no request has been received that is not yet answered."""
        return self.conn.their_state is h11.IDLE

    def _abort(self) -> None:
        self.transport.abort()


def _cancel(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """Cancel a timer, if any, and return None."""
    if timer is not None:
        timer.cancel()
    return None
