"""A worker whose machine has a wrong clock, and which tries to purge every two seconds."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

import sqlalchemy as sa

from stream_app.processes.child_processes import PREFIX, environment, running_process
from stream_app.store.database import tables
from stream_app.store.lifecycle import retention
from stream_app.store.stream.repository import Store
from tests.e2e.service import Service

CLOCKS = ("+40d", "-40d", "+400d", "-400d")
"""Beyond the retention times of texts and of sessions."""
_MODULE = "tests.chaos.eager_purge"
_REPOSITORY = Path(__file__).resolve().parents[2]
_SLACK = timedelta(minutes=1)
_STORED = (tables.turns, tables.sessions)


class WrongClock:
    """At most one worker at a time."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._running = ExitStack()
        self.log = service.folder / "wrong-clock.log"

    def start(self, faked_time: dict[str, str]) -> None:
        """Start it, in place of an earlier one."""
        self.stop()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        settings = environment(self._service.settings)
        command = [sys.executable, "-m", _MODULE, "worker"]
        process = running_process(
            command, self.log, {**kept, **settings, **faked_time}, _REPOSITORY
        )
        self._running.enter_context(process)

    def stop(self) -> None:
        """Stop it, if it runs."""
        self._running.close()

    def make_purge_due(self) -> None:
        """Forget when a worker purged last."""
        table = tables.installation
        with self._service.store.transaction() as connection:
            connection.execute(sa.delete(table).where(table.c.name == retention.LAST_RUN))

    def refusals(self) -> int:
        """How often it has refused to purge."""
        return self.log.read_text("utf-8", "replace").count("outdated.refused")


def differences(store: Store, began: datetime, ended: datetime) -> list[str]:
    """What was stored at another time than that of the run: it would be purged too early or late.

    By the clock of the database, which is that of this machine.
    """
    earliest, latest = began - _SLACK, ended + _SLACK
    found: list[str] = []
    with store.reading() as connection:
        for table in _STORED:
            at = table.c.stored_at
            wrong = sa.select(table.c.session_id, at).where((at < earliest) | (at > latest))
            rows = connection.execute(wrong.limit(3))
            found += [f"{table.name} {name} was stored at {stored}" for name, stored in rows]
    return found
