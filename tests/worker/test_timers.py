"""Failures of a timer are logged and retried; cancellation is not delayed."""

import asyncio

import pytest
from structlog.testing import capture_logs

from stream_app.worker.upkeep.timers import Runs, Task


class Rounds:
    def __init__(self, *problems: BaseException | None) -> None:
        self.problems = list(problems)
        self.done = 0
        self.exclusive = asyncio.Lock()
        self.alone: list[bool] = []

    async def round(self) -> None:
        self.alone.append(self.exclusive.locked())
        problem = self.problems.pop(0)
        if problem is not None:
            raise problem
        self.done += 1

    async def run(self, runs: Runs = Runs.BESIDE, *, fatal: bool = False) -> None:
        await Task("round", 1.0, self.round, runs, fatal).run(self.exclusive)


async def test_a_failure_is_logged_and_the_next_call_runs() -> None:
    rounds = Rounds(ValueError("no"), None)
    with capture_logs() as logged:
        await rounds.run()
        await rounds.run()
    assert rounds.done == 1
    assert logged == [
        {"event": "round.failed", "log_level": "error", "reason": "ValueError", "detail": "no"}
    ]


async def test_a_cancellation_is_not_suppressed() -> None:
    with pytest.raises(asyncio.CancelledError):
        await Rounds(asyncio.CancelledError()).run()


async def test_a_fatal_failure_is_raised() -> None:
    with pytest.raises(ValueError, match="no"):
        await Rounds(ValueError("no")).run(fatal=True)


async def test_a_task_between_batches_excludes_them_also_if_it_fails() -> None:
    rounds = Rounds(None, None, None, ValueError("no"))
    for runs in (Runs.BESIDE, Runs.IN_PIECES, Runs.BETWEEN, Runs.BETWEEN):
        await rounds.run(runs)
    assert rounds.alone == [False, False, True, True]
    assert not rounds.exclusive.locked()
