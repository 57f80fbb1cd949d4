"""Connections that are slow on purpose, or by accident, do not stay for ever.

uvicorn closes connections that are idle between two requests, and waits for ever for the rest of a
request and for a client that reads nothing.
"""

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_WITHIN: Final = 10.0
"""Seconds from the opening of a connection, or the first byte of a request, to its headers' end."""
BODY_WITHIN: Final = 60.0
READ_WITHIN: Final = 60.0
"""Seconds for which a client may take nothing of an answer that waits for it."""
MOST_CONNECTIONS: Final = 1000
"""Of one process; further requests are answered 503."""


class TimedProtocol(H11Protocol):
    """HTTP/1.1 with a deadline for each step that a client takes."""

    headers_within = HEADERS_WITHIN
    body_within = BODY_WITHIN
    read_within = READ_WITHIN

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._asking: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None
        self._step: object = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The headers of a request have to come."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """The next step may have begun."""
        super().data_received(data)
        self._watch()

    def pause_writing(self) -> None:
        """The client does not keep up."""
        super().pause_writing()
        self._reading = self.loop.call_later(self.read_within, self._give_up)

    def resume_writing(self) -> None:
        """It has taken some."""
        super().resume_writing()
        self._reading = _cancel(self._reading)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._asking, self._reading = _cancel(self._asking), _cancel(self._reading)
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Set the deadline of the step that the client has to take; a step's bytes do not move it.

        What comes while an answer is on its way is looked at after it.
        """
        step = self.conn.their_state
        if step is self._step and self._asking is not None:
            return
        self._step, self._asking = step, _cancel(self._asking)
        within = {h11.IDLE: self.headers_within, h11.SEND_BODY: self.body_within}.get(step)
        if within is not None:
            self._asking = self.loop.call_later(within, self._give_up)

    def _give_up(self) -> None:
        self.transport.abort()


def _cancel(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """Cancel a timer; there is none then."""
    if timer is not None:
        timer.cancel()
    return None
