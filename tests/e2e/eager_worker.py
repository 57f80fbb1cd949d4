"""A worker that updates the roll-ups twice a second instead of every ten minutes."""

from datetime import timedelta

from stream_app.analytics.rollups import rollups
from stream_app.processes import worker as command
from stream_app.settings import Settings
from stream_app.worker.upkeep import tasks

if __name__ == "__main__":
    tasks.ROLLUPS_EVERY = 0.5
    rollups.INTERVAL = timedelta(0)  # type: ignore[misc]
    command.run(Settings())
