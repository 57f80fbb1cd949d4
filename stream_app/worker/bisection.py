"""Keeps one event from stopping its partition.

Where a batch fails, its halves are tried by themselves, down to single events, in the order of the
log. An event that fails alone is set aside, with the error's name for a reason, if it can be its
fault: a made-up session must go through model and database, and the event must fail once more.
Otherwise the error is raised, nothing is acknowledged, and the events are read again.
"""

import structlog
from msgspec import structs

from stream_app.core.pipeline import Received
from stream_app.errors import ContractError
from stream_app.worker.poison import as_contract_error, may_be_poison
from stream_app.worker.processor import BatchProcessor, Committed

log = structlog.get_logger(__name__)


def handle_bisecting(processor: BatchProcessor, batch: list[Received]) -> list[Committed]:
    """Work on a batch; what was committed, in one piece or, if need be, in several.

    Raises:
        Exception: what cannot be an event's fault; earlier parts may be committed by then.
    """
    try:
        return [processor.handle(batch)]
    except Exception as problem:
        if not may_be_poison(problem):
            raise
        log.warning("batch.split", events=len(batch), reason=type(problem).__name__)
    if len(batch) == 1:
        return [_alone(processor, batch[0])]
    middle = len(batch) // 2
    return handle_bisecting(processor, batch[:middle]) + handle_bisecting(processor, batch[middle:])


def _alone(processor: BatchProcessor, received: Received) -> Committed:
    if isinstance(received.event, ContractError):
        return processor.handle([received])
    processor.run_self_test()
    try:
        return processor.handle([received])
    except Exception as problem:
        if not may_be_poison(problem):
            raise
        refused = as_contract_error(problem)
    log.error(
        "event.unprocessable",
        detail=refused.detail,
        partition=received.source.partition,
        offset=received.source.offset,
    )
    return processor.handle([structs.replace(received, event=refused, encoding=None)])
