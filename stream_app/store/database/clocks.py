"""The database's clock. What is deleted by age is dated and measured by it.

Every process of an installation uses the same database, so its rows have one clock, also if that of
a worker's machine is wrong. SQLite has no clock of its own: there it is this machine's.
"""

import time
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.errors import ClocksDisagree

TOLERANCE: Final = timedelta(minutes=5)
"""How far the clocks of an installation may differ; NTP keeps them within a second."""
NOW: Final = "SELECT clock_timestamp()"


class DatabaseClock:
    """The present by a server's clock, as last read; this process only counts the time since.

    A wrong or changed clock of this machine has no effect. Before it is first read, the present is
    this machine's.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._read: tuple[datetime, float] | None = None

    def note(self, now: datetime) -> None:
        """The server says that it is ``now``."""
        with self._lock:
            self._read = now, time.monotonic()

    def __call__(self) -> datetime:
        """The present in UTC."""
        with self._lock:
            read = self._read
        if read is None:
            return datetime.now(UTC)
        now, at = read
        return now + timedelta(seconds=time.monotonic() - at)

    def read_by(self, connection: Any, _record: object) -> None:
        """Read the clock over a new connection of the driver."""
        with connection.cursor() as cursor:
            [now] = cursor.execute(NOW).fetchone()
        connection.commit()
        self.note(now.astimezone(UTC))


def database_now(connection: Connection) -> datetime:
    """The present by the database's clock."""
    if connection.dialect.name == "sqlite":
        stamp = connection.scalar(sa.text("SELECT strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now')"))
        return datetime.fromisoformat(str(stamp))
    found: datetime = connection.execute(sa.text(NOW)).scalar_one()
    return found.astimezone(UTC)


def check(
    database: datetime,
    machine: datetime,
    broker: tuple[datetime, datetime] | None = None,
) -> None:
    """Check that the clocks agree.

    Args:
        database: the present by the database's clock.
        machine: by this machine's.
        broker: the earliest and the latest that it can be by the broker's; None if unknown.

    Raises:
        ClocksDisagree: two differ by more than ``TOLERANCE``; the message says how.
    """
    if abs(machine - database) > TOLERANCE:
        raise ClocksDisagree(f"this machine's is {_apart(machine, database)} the database's")
    if broker is None:
        return
    earliest, latest = broker
    for name, clock in (("the database's", database), ("this machine's", machine)):
        for bound, beyond in ((latest, clock - latest), (earliest, earliest - clock)):
            if beyond > TOLERANCE:
                raise ClocksDisagree(f"{name} is {_apart(clock, bound)} the broker's")


def _apart(one: datetime, other: datetime) -> str:
    apart = abs(one - other)
    size = f"{apart.days} days" if apart.days > 1 else f"{apart.total_seconds() / 60:.0f} minutes"
    return f"{size} {'ahead of' if one > other else 'behind'}"
