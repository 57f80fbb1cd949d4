"""Which event of a batch each output belongs to, so that its message continues that trace."""

from collections.abc import Iterable

from stream_app.contracts.events import Turn
from stream_app.contracts.scores import Output, SessionScore
from stream_app.core.pipeline.pipeline import Received
from stream_app.core.session.ports import TraceHeaders
from stream_app.errors import ContractError


class TraceOrigins:
    """Trace headers of outputs: of their turn if it is in the batch, else of the last event.

    ``otherwise``: for sessions without an event in the batch.
    """

    def __init__(self, batch: Iterable[Received], otherwise: TraceHeaders) -> None:
        self._otherwise = otherwise
        self._by_session: dict[str, TraceHeaders] = {}
        self._by_turn: dict[tuple[str, int], TraceHeaders] = {}
        for received in batch:
            event = received.event
            if not received.trace or isinstance(event, ContractError):
                continue
            self._by_session[event.session_id] = received.trace
            if isinstance(event, Turn):
                self._by_turn[event.session_id, event.seq] = received.trace

    def find(self, output: Output) -> TraceHeaders:
        """The headers of one output."""
        last = self._by_session.get(output.session_id, self._otherwise)
        if isinstance(output, SessionScore) or output.seq is None:
            return last
        return self._by_turn.get((output.session_id, output.seq), last)
