"""`python -m tests.chaos.eager_purge worker`: `rapport`, but workers try to purge all the time."""

from stream_app.cli import main
from stream_app.worker import agents

EVERY = 2.0

if __name__ == "__main__":
    agents.PURGE_EVERY = EVERY
    main()
