"""Failures of a timer are logged and retried; cancellation is not delayed."""

import asyncio

import pytest
from structlog.testing import capture_logs

from stream_app.worker.upkeep.timers import periodic


class Rounds:
    def __init__(self, *problems: BaseException | None) -> None:
        self.problems = list(problems)
        self.done = 0

    @periodic("round.failed")
    async def round(self) -> None:
        problem = self.problems.pop(0)
        if problem is not None:
            raise problem
        self.done += 1


async def test_a_failure_is_logged_and_the_next_call_runs() -> None:
    rounds = Rounds(ValueError("no"), None)
    with capture_logs() as logged:
        await rounds.round()
        await rounds.round()
    assert rounds.done == 1
    assert logged == [
        {"event": "round.failed", "log_level": "error", "reason": "ValueError", "detail": "no"}
    ]


async def test_a_cancellation_is_not_suppressed() -> None:
    with pytest.raises(asyncio.CancelledError):
        await Rounds(asyncio.CancelledError()).round()
