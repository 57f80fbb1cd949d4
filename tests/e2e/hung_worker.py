"""A worker whose event loop stops for good with its first batch; its watchdog is impatient."""

import time
from typing import Any

from stream_app import bootstrap
from stream_app.commands import worker as command
from stream_app.settings import Settings
from stream_app.worker.health import HealthLimits

real = bootstrap.worker


def worker(*arguments: Any) -> Any:
    """The real worker, with the fault."""
    app, agent = real(*arguments)
    agent.health._limits = HealthLimits(beat=2.0)
    agent.on_batch = lambda _: time.sleep(1000)
    return app, agent


if __name__ == "__main__":
    bootstrap.worker = worker
    command.run(Settings())
