"""A worker whose event loop blocks forever at its first batch, with a short watchdog limit."""

import time
from typing import Any

from stream_app.bootstrap import worker_process
from stream_app.processes import worker as command
from stream_app.settings import Settings
from stream_app.worker.upkeep.health import HealthLimits

real = worker_process.worker


def worker(*arguments: Any) -> Any:
    """Create the real worker with the fault."""
    app, agent = real(*arguments)
    agent.health._limits = HealthLimits(beat=2.0)
    agent.lane.on_commit = lambda _: time.sleep(1000)
    return app, agent


if __name__ == "__main__":
    worker_process.worker = worker
    command.run(Settings())
