"""A periodic task of a worker, and how it runs beside the batches."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from enum import Enum
from typing import Any

import structlog
from msgspec import Struct

log = structlog.get_logger(__name__)


class Runs(Enum):
    """The way in which a task is run."""

    BETWEEN = "every worker, while no batch is processed"
    IN_PIECES = "every worker, in pieces between which batches are processed"
    BESIDE = "every worker, while batches go on"
    ONCE = "the worker that claims the run, while batches go on"


class Task(Struct, frozen=True):
    """A task; a failure is logged as ``NAME.failed``, and the next call tries again."""

    name: str
    every: float
    """Seconds."""
    work: Callable[[], Coroutine[Any, Any, None]]
    runs: Runs
    fatal: bool = False
    """Whether a failure stops the worker instead, as Faust does when a timer raises."""

    async def run(self, exclusive: asyncio.Lock) -> None:
        """Run it once; ``exclusive`` is held while a batch is processed."""
        between = self.runs is Runs.BETWEEN
        try:
            async with exclusive if between else nullcontext():
                await self.work()
        except Exception as problem:
            if self.fatal:
                raise
            log.error(f"{self.name}.failed", reason=type(problem).__name__, detail=str(problem))
