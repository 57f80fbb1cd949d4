"""A worker's processor over a store, with a scorer that needs no model."""

import time
from collections.abc import Callable

from stream_app.core.rules import RuleSet
from stream_app.store.repository import Store
from stream_app.worker.metrics import WorkerMetrics
from stream_app.worker.processor import BatchProcessor, OutTopics, SessionCache
from tests.rule_texts import EAGER
from tests.store.batches import pipeline

TOPICS = OutTopics("turn-scores", "session-scores", "alerts")


def processor(
    store: Store,
    retry_for: float = 30.0,
    cached: int = 100,
    clock: Callable[[], float] = time.monotonic,
    rules: RuleSet = EAGER,
) -> BatchProcessor:
    """As a worker has it; at most ``cached`` sessions in memory."""
    cache = SessionCache(cached)
    return BatchProcessor(pipeline(rules), store, TOPICS, cache, retry_for, WorkerMetrics(), clock)
