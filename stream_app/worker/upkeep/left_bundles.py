"""Ends what bundles that are no longer in force have left open; see ``store.left_states``."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Final

import structlog

from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.session.batch import BatchResult
from stream_app.store.stream import left_states
from stream_app.store.stream.left_states import Closed
from stream_app.store.stream.repository import Store
from stream_app.worker.batches.commits import Committed
from stream_app.worker.batches.processor import BatchProcessor

log = structlog.get_logger(__name__)

SWEEP_EVERY: Final = 600.0
"""Seconds between two sweeps of the same bundles and partitions."""


class LeftBundles:
    """Closes states at their time, and sweeps when bundles or partitions have changed."""

    def __init__(
        self,
        store: Store,
        pipeline: Pipeline,
        processor: BatchProcessor,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._pipeline = pipeline
        self._processor = processor
        self._clock = clock
        self._swept: dict[int, tuple[list[str], float]] = {}

    def close(self, before: datetime, partitions: list[int]) -> Committed | None:
        """End some sessions under their earlier bundles; None once there are none."""
        in_force = [each.environment.bundle_id for each in self._pipeline.bundles]
        messages = self._processor.outgoing.of_alerts
        found = left_states.close(self._store, in_force, before, partitions, messages)
        if found is None and self._is_due(in_force, partitions):
            found = left_states.sweep(self._store, in_force, partitions, messages)
            if found is None:
                swept = in_force, self._clock()
                self._swept.update(dict.fromkeys(partitions, swept))
        return self._committed(found) if found is not None else None

    def _is_due(self, in_force: list[str], partitions: list[int]) -> bool:
        since = self._clock() - SWEEP_EVERY
        known = [self._swept.get(partition) for partition in partitions]
        return any(each is None or each[0] != in_force or each[1] <= since for each in known)

    def _committed(self, found: Closed) -> Committed:
        log.info("left.closed", sessions=len(found.session_ids), alerts=len(found.alerts))
        self._processor.cache.discard(found.session_ids)
        for alert in found.alerts:
            self._processor.metrics.alerts.labels(alert.state.value).inc()
        return Committed(BatchResult(alerts=found.alerts), found.messages, found.outbox_id)
