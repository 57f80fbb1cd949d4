"""Periodic tasks of a worker."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, TypeVar

import structlog

Owner = TypeVar("Owner")
Work = Callable[[Owner], Coroutine[Any, Any, None]]

log = structlog.get_logger(__name__)


def periodic(event: str) -> Callable[[Work[Owner]], Work[Owner]]:
    """Decorate a timer's method to log failures as ``event``; the next call retries.

    Without it, Faust stops the worker when a timer raises.
    """

    def guarded(work: Work[Owner]) -> Work[Owner]:
        @wraps(work)
        async def run(owner: Owner, /) -> None:
            try:
                await work(owner)
            except asyncio.CancelledError:
                raise
            except Exception as problem:  # noqa: BLE001
                log.error(event, reason=type(problem).__name__, detail=str(problem))

        return run

    return guarded
