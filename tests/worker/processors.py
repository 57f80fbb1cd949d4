"""A worker's processor with a fake scorer."""

import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from stream_app.contracts import plausible
from stream_app.contracts.plausible import PlausibleTimes
from stream_app.core.pipeline.pipeline import Pipeline, Received, Source, receive
from stream_app.core.pipeline.shadow import Shadow
from stream_app.core.rules.rules import RuleSet
from stream_app.store.stream import shadow_scores
from stream_app.store.stream.repository import Store
from stream_app.tracing.port import OFF, Tracing
from stream_app.worker.batches.commits import Committed
from stream_app.worker.batches.metrics import WorkerMetrics
from stream_app.worker.batches.outgoing import OutputTopics
from stream_app.worker.batches.processor import BatchProcessor, BatchSettings, Clocks
from tests.rule_texts import EAGER
from tests.store.batches import pipeline

TOPICS = OutputTopics("turn-scores", "session-scores", "alerts")


def processor(
    store: Store,
    retry_for: float = 30.0,
    cached: int = 100,
    clock: Callable[[], float] = time.monotonic,
    rules: RuleSet = EAGER,
    times: PlausibleTimes = plausible.DEFAULT,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    tracing: Tracing = OFF,
    shadow: Shadow | None = None,
    core: Pipeline | None = None,
) -> BatchProcessor:
    """A processor with at most ``cached`` sessions in memory."""
    core = core or pipeline(rules)
    core.shadow = shadow
    return BatchProcessor(
        core,
        store,
        BatchSettings(TOPICS, retry_for, cached, times),
        WorkerMetrics(),
        Clocks(now, clock),
        tracing,
        lambda scores: shadow_scores.write(store, scores),
    )


def records(values: Sequence[bytes], headers: dict[str, bytes] | None = None) -> list[Received]:
    """The values as records of one partition."""
    return [receive(Source("t", 0, i), value, headers or {}) for i, value in enumerate(values)]


def live(values: Sequence[bytes]) -> list[Received]:
    """Like ``records``, appended by the broker at the time of the event."""
    times = [datetime.fromisoformat(json.loads(value)["occurred_at"]) for value in values]
    return [
        receive(Source("t", 0, i), value, {}, at, at)
        for i, (value, at) in enumerate(zip(values, times, strict=True))
    ]


def handle(
    worker: BatchProcessor, values: Sequence[bytes], headers: dict[str, bytes] | None = None
) -> Committed:
    """Prepare and handle one batch."""
    return worker.handle(worker.prepare(records(values, headers)))
