"""Reading ahead: while a batch is scored and committed, the turns of the next one are encoded.

A turn's encoding depends on nothing but its text and role, so it may be made before the states of
the sessions are known. Only what consent covers as far as can be told from here is read ahead; the
pipeline encodes the rest when it has seen the state.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec import Struct

from stream_app.contracts import cloudevents
from stream_app.contracts.events import Event, Turn, decode
from stream_app.core.pipeline import Pipeline, Received, Source
from stream_app.core.ports import Encoding
from stream_app.errors import ContractError
from stream_app.worker.metrics import WorkerMetrics


class Record(Struct, frozen=True):
    """One Kafka record as it came."""

    source: Source
    value: bytes
    headers: dict[str, bytes]
    produced_at: datetime | None


class BatchReader:
    """Decodes and encodes. Not thread-safe: one call at a time, in the order of the log.

    ``may_score`` says whether the state of a session in memory allows it, False where there is
    none; it is called from the thread that reads.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        may_score: Callable[[str], bool],
        metrics: WorkerMetrics,
    ) -> None:
        self._pipeline = pipeline
        self._may_score = may_score
        self._metrics = metrics
        self._said: dict[str, bool] = {}

    def read(self, records: Sequence[Record]) -> list[Received]:
        """The events of a batch, turns with their encodings."""
        self._metrics.batch_events.observe(len(records))
        with self._metrics.timed("decode"):
            events = [_event(record.value, record.headers) for record in records]
        with self._metrics.timed("encode"):
            encodings = self._encoded(events)
        return [
            Received(record.source, record.value, event, record.produced_at, encodings.get(place))
            for place, (record, event) in enumerate(zip(records, events, strict=True))
        ]

    def _encoded(self, events: Sequence[Event | ContractError]) -> dict[int, Encoding]:
        """Encodings by place in the batch."""
        before, self._said = self._said, {}
        turns: dict[int, Turn] = {}
        for place, event in enumerate(events):
            if isinstance(event, Turn):
                if event.consent is not None:
                    self._said[event.session_id] = event.consent
                if self._may_encode(event.session_id, before):
                    turns[place] = event
        encoded = self._pipeline.encode(turns.values())
        return dict(zip(turns, encoded, strict=True))

    def _may_encode(self, session_id: str, before: dict[str, bool]) -> bool:
        """By this batch, by the one before, which may not be in the states yet, by the state."""
        for said in (self._said, before):
            if session_id in said:
                return said[session_id]
        return self._may_score(session_id)


def _event(raw: bytes, headers: dict[str, bytes]) -> Event | ContractError:
    try:
        event = decode(raw)
        if cloudevents.is_cloud_event(headers):
            cloudevents.check(headers, event)
    except ContractError as problem:
        return problem
    return event
