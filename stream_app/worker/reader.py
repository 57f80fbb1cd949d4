"""Reading ahead: while a batch is scored and committed, the next one is decoded and encoded."""

from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec import Struct

from stream_app.contracts import cloudevents
from stream_app.contracts.events import Event, decode
from stream_app.core.encodings import Encodings
from stream_app.core.pipeline import Received, Source
from stream_app.core.session_state import SessionState
from stream_app.errors import ContractError
from stream_app.worker.metrics import WorkerMetrics


class Record(Struct, frozen=True):
    """A Kafka record before it is decoded."""

    source: Source
    value: bytes
    headers: dict[str, bytes]
    produced_at: datetime | None


class BatchReader:
    """Decodes and encodes. Not thread-safe: one call at a time, in the order of the log.

    ``in_memory`` gives a session's cached state, if any; it is called from the reading thread.
    """

    def __init__(
        self,
        encodings: Encodings,
        in_memory: Callable[[str], SessionState | None],
        metrics: WorkerMetrics,
    ) -> None:
        self._encodings = encodings
        self._in_memory = in_memory
        self._metrics = metrics

    def read(self, records: Sequence[Record]) -> list[Received]:
        """Decode a batch, and encode the turns that consent is known to cover."""
        self._metrics.batch_events.observe(len(records))
        with self._metrics.timed("decode"):
            events = [_event(record.value, record.headers) for record in records]
        with self._metrics.timed("encode"):
            encodings = self._encodings.ahead(events, self._in_memory)
        return [
            Received(record.source, record.value, event, record.produced_at, encoding)
            for record, event, encoding in zip(records, events, encodings, strict=True)
        ]


def _event(raw: bytes, headers: dict[str, bytes]) -> Event | ContractError:
    try:
        event = decode(raw)
        if cloudevents.is_cloud_event(headers):
            cloudevents.check(headers, event)
    except ContractError as problem:
        return problem
    return event
