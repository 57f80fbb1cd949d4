"""The messages that follow from a batch: which ones, in which trace."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from stream_app.contracts import scores
from stream_app.contracts.events import Turn
from stream_app.contracts.scores import Alert, Output, SessionScore
from stream_app.core.pipeline.pipeline import Received
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.ports import Message, TraceHeaders
from stream_app.errors import ContractError
from stream_app.tracing.port import OFF, Tracing


class OutputTopics(Struct, frozen=True):
    """The topics of scores and alerts."""

    turn_scores: str
    session_scores: str
    alerts: str


class Outgoing:
    """Turns results into messages; ``hide_withdrawn``: what the setting says of such sessions."""

    def __init__(
        self, topics: OutputTopics, *, hide_withdrawn: bool = True, tracing: Tracing = OFF
    ) -> None:
        self._topics = topics
        self._hide_withdrawn = hide_withdrawn
        self._tracing = tracing

    def messages(self, result: BatchResult, batch: Sequence[Received] = ()) -> list[Message]:
        """Scores and alerts; of a hidden session only that it cannot be read any more."""
        return list(self._messages(result, batch))

    def of_alerts(self, alerts: Sequence[Alert]) -> list[Message]:
        """The messages of alerts that end without an event or a timer of their session."""
        return self.messages(BatchResult(alerts=list(alerts)))

    def _messages(self, result: BatchResult, batch: Sequence[Received]) -> Iterator[Message]:
        topics, origins = self._topics, TraceOrigins(batch, self._tracing.headers())
        hidden = self._hidden(result)
        for topic, outputs in (
            (topics.turn_scores, result.turn_scores),
            (topics.session_scores, result.session_scores),
            (topics.alerts, result.alerts),
        ):
            for output in outputs:
                if output.session_id not in hidden:
                    key, trace = output.session_id.encode(), origins.find(output)
                    kind = str(output.__struct_config__.tag)
                    yield Message(topic, key, scores.encode(output), kind, trace)
            for session_id in _withdrawn_now(result, hidden):
                yield Message(topic, session_id.encode(), None)

    def _hidden(self, result: BatchResult) -> set[str]:
        if not self._hide_withdrawn:
            return set()
        return {key for key, versioned in result.sessions.items() if versioned.state.withdrawn}


def _withdrawn_now(result: BatchResult, hidden: set[str]) -> list[str]:
    """Hidden sessions whose consent this batch has withdrawn."""
    found = [record.session_id for record in result.consents if record.withdraws]
    return [key for key in dict.fromkeys(found) if key in hidden]


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
