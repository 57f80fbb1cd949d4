"""``rapport notify`` and ``reviews ask`` that look and try again often: ``-m tests.impatient``."""

from stream_app import cli
from stream_app.bootstrap import asking_process, notifier_process

for process in (asking_process, notifier_process):
    process.EVERY = 0.1
    process.LONGEST_WAIT = 0.5

if __name__ == "__main__":
    cli.main()
