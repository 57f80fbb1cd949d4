"""Reading ahead: while a batch is scored and committed, the turns of the next one are encoded.

A turn's encoding depends on nothing but its text and role, so it may be made before the states of
the sessions are known. Only what consent covers as far as can be told from here is read ahead; the
pipeline encodes the rest when it has seen the state.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import structlog
from msgspec import UNSET, Struct, UnsetType

from stream_app.contracts import cloudevents, plausible
from stream_app.contracts.events import Event, Turn, decode
from stream_app.contracts.plausible import PlausibleTimes
from stream_app.core.pipeline import Pipeline, Received, Source
from stream_app.core.ports import Encoding
from stream_app.errors import ContractError
from stream_app.worker.blame import may_be_an_events_fault, refusal
from stream_app.worker.metrics import WorkerMetrics

log = structlog.get_logger(__name__)

LOG_APPEND_TIME: Final = 1
"""The type of a record's timestamp that is from the broker's clock."""


class Record(Struct, frozen=True):
    """One Kafka record as it came.

    ``produced_at``: its timestamp, whoever's clock that is from. ``appended_at``: the broker's time
    of appending it, where the topic says so. ``key``: unset where nobody looked.
    """

    source: Source
    value: bytes
    headers: dict[str, bytes]
    produced_at: datetime | None
    appended_at: datetime | None = None
    key: bytes | UnsetType | None = UNSET


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
        times: PlausibleTimes = plausible.DEFAULT,
    ) -> None:
        self._times = times
        self._pipeline = pipeline
        self._may_score = may_score
        self._metrics = metrics
        self._said: dict[str, bool] = {}
        self._said_miskeyed = False

    def read(self, records: Sequence[Record]) -> list[Received]:
        """The events of a batch, turns with their encodings."""
        self._metrics.batch_events.observe(len(records))
        with self._metrics.timed("decode"):
            now = datetime.now(UTC)
            events = [self._event(record, now) for record in records]
        with self._metrics.timed("encode"):
            encodings = self._encoded(events)
        return [
            Received(
                record.source,
                record.value,
                event,
                record.produced_at,
                encodings.get(place),
                record.appended_at,
            )
            for place, (record, event) in enumerate(zip(records, events, strict=True))
        ]

    def _event(self, record: Record, now: datetime) -> Event | ContractError:
        try:
            event = decode(record.value)
            if cloudevents.is_cloud_event(record.headers):
                cloudevents.check(record.headers, event)
            self._times.check(event, record.appended_at or now)
            self._check_key(record, event)
        except ContractError as problem:
            return problem
        except Exception as problem:
            if not may_be_an_events_fault(problem):
                raise
            return refusal(problem)
        return event

    def _check_key(self, record: Record, event: Event) -> None:
        """Count an event that may be in another partition than the rest of its session."""
        if record.key is UNSET or record.key == event.session_id.encode():
            return
        self._metrics.miskeyed.inc()
        if not self._said_miskeyed:
            self._said_miskeyed = True
            log.warning(
                "event.miskeyed",
                partition=record.source.partition,
                offset=record.source.offset,
                why="its key is not its session_id: sessions may be spread over partitions",
            )

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
        try:
            encoded = self._pipeline.encode(turns.values())
        except Exception as problem:
            if not may_be_an_events_fault(problem):
                raise
            return {}  # it comes again where the batch is worked on, and is traced to its event
        return dict(zip(turns, encoded, strict=True))

    def _may_encode(self, session_id: str, before: dict[str, bool]) -> bool:
        """By this batch, by the one before, which may not be in the states yet, by the state."""
        for said in (self._said, before):
            if session_id in said:
                return said[session_id]
        return self._may_score(session_id)


def record_of(event: Any) -> Record:
    """Of a Faust event; a timestamp that no date holds is none."""
    message = event.message
    timestamp, produced_at = message.timestamp, None
    if timestamp is not None and timestamp > 0.0:
        with suppress(OverflowError, ValueError, OSError):
            produced_at = datetime.fromtimestamp(timestamp, UTC)
    return Record(
        source=Source(message.topic, message.partition, message.offset),
        value=event.value or b"",
        headers=cloudevents.headers_of(message.headers),
        produced_at=produced_at,
        key=message.key,
        appended_at=produced_at if message.timestamp_type == LOG_APPEND_TIME else None,
    )
