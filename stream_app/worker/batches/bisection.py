"""Isolates poison pills, so that one event does not block its partition.

A batch that fails is bisected down to single events, in log order. An event that fails alone is
dead-lettered with the name of the error, but only if a self-test (a synthetic session through model
and database) succeeds and the event then fails again. Otherwise the error is raised, nothing is
acknowledged, and the events are read again.

A batch is also split if other workers keep advancing its sessions, which happens when events of a
session have different keys: a shorter batch is calculated faster, so fewer commits come between.
"""

import structlog
from msgspec import structs

from stream_app.core.pipeline.pipeline import Received, parts
from stream_app.errors import ContractError, StaleState
from stream_app.worker.batches.poison import as_contract_error, may_be_poison
from stream_app.worker.batches.processor import BatchProcessor, Committed

log = structlog.get_logger(__name__)


def handle_in_parts(processor: BatchProcessor, batch: list[Received]) -> list[Committed]:
    """Process a batch; an edit or a deletion needs what precedes it to be committed.

    Raises:
        Exception: as ``handle_bisecting``.
    """
    return [done for part in parts(batch) for done in handle_bisecting(processor, part)]


def handle_bisecting(processor: BatchProcessor, batch: list[Received]) -> list[Committed]:
    """Process a batch, in several parts if it fails as a whole; returns the committed parts.

    Raises:
        Exception: an error that no event caused; earlier parts may already be committed.
    """
    try:
        return [processor.handle(batch)]
    except Exception as problem:
        contended = isinstance(problem, StaleState) and len(batch) > 1
        if not contended and not may_be_poison(problem):
            raise
        log.warning("batch.split", events=len(batch), reason=type(problem).__name__)
    if len(batch) == 1:
        return [_handle_single(processor, batch[0])]
    middle = len(batch) // 2
    return handle_bisecting(processor, batch[:middle]) + handle_bisecting(processor, batch[middle:])


def _handle_single(processor: BatchProcessor, received: Received) -> Committed:
    if isinstance(received.event, ContractError):
        return _handle_refused(processor, received)
    processor.run_self_test()
    try:
        return processor.handle([received])
    except Exception as problem:
        if not may_be_poison(problem):
            raise
        rejection = as_contract_error(problem)
    log.error(
        "event.unprocessable",
        detail=rejection.detail,
        partition=received.source.partition,
        offset=received.source.offset,
    )
    return processor.handle([structs.replace(received, event=rejection, encoding=None)])


def _handle_refused(processor: BatchProcessor, received: Received) -> Committed:
    """Set a refused event aside, also if the turns that waited for it cannot be processed."""
    try:
        return processor.handle([received])
    except Exception as problem:
        if received.refused is None or not may_be_poison(problem):
            raise
    return processor.handle([structs.replace(received, gap=False)])
