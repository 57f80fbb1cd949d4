"""`python -m tests.chaos.eager_purge worker`: `rapport`, but workers try to purge all the time."""

from stream_app.cli import main
from stream_app.worker.upkeep import tasks

EVERY = 2.0

if __name__ == "__main__":
    tasks.PURGE_EVERY = EVERY
    main()
