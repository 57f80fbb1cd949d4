"""Decodes Faust events; a record that cannot be decoded becomes a dead letter."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import structlog
from msgspec import structs

from stream_app.contracts import cloudevents
from stream_app.core.pipeline.pipeline import Received, Source, receive
from stream_app.errors import ContractError
from stream_app.tracing.port import OFF, Tracing
from stream_app.worker.batches.metrics import WorkerMetrics
from stream_app.worker.batches.poison import as_contract_error, may_be_poison

log = structlog.get_logger(__name__)

LOG_APPEND_TIME: Final = 1
"""Kafka's type code of timestamps that the broker has set."""


class RecordDecoder:
    """Decodes records; counts those whose key may put them in a wrong partition."""

    def __init__(self, metrics: WorkerMetrics, tracing: Tracing = OFF) -> None:
        self._metrics = metrics
        self._tracing = tracing
        self._reported = False

    def decode(self, event: Any) -> Received:
        """Decode the record of a Faust event; the event is a ContractError if that fails."""
        message = event.message
        source = Source(message.topic, message.partition, message.offset)
        with self._tracing.record(source, message.headers) as trace:
            received = self._decode(source, message, event.value or b"")
            self._check_key(received, message.key)
        return structs.replace(received, trace=trace) if trace else received

    def _decode(self, source: Source, message: Any, value: bytes) -> Received:
        produced_at = moment(message.timestamp)
        appended_at = produced_at if message.timestamp_type == LOG_APPEND_TIME else None
        try:
            headers = cloudevents.headers_of(message.headers)
            return receive(source, value, headers, produced_at, appended_at)
        except Exception as problem:
            if not may_be_poison(problem):
                raise
            return Received(source, value, as_contract_error(problem), produced_at)

    def _check_key(self, received: Received, key: bytes | None) -> None:
        if isinstance(received.event, ContractError) or key == received.event.session_id.encode():
            return
        self._metrics.miskeyed.inc()
        if not self._reported:
            self._reported = True
            log.warning(
                "event.miskeyed",
                partition=received.source.partition,
                offset=received.source.offset,
                why="the key is not the session_id; sessions may be spread over several partitions",
            )


def moment(timestamp: float | None) -> datetime | None:
    """The time of a record; None if it is missing or not representable as a datetime."""
    if timestamp is not None and timestamp > 0.0:
        with suppress(OverflowError, ValueError, OSError):
            return datetime.fromtimestamp(timestamp, UTC)
    return None
