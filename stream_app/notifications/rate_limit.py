"""Rate limit of one target: hourly cap, quiet hours, and when a digest is due.

All functions are pure: they depend only on the number of notifications sent and the time.

The cap includes digests, so a target gets at most ``hourly_cap`` notifications in any rolling hour.
With ``digest_every``, part of the cap is reserved for digests, so that alerts over the cap wait at
most that long. With a cap of 6 and a digest every 30 minutes, 4 alerts are sent separately::

    10:00 ● ● ● ●  (7 alerts: 4 sent, 3 held)   10:30 ▤  (digest of 3)   11:00 ● ● ● ● again
"""

import math
from datetime import datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct

from stream_app.notifications.rota import WEEKDAYS, Rota, WeeklyShift

HOUR: Final = timedelta(hours=1)


class QuietHours(Struct, frozen=True):
    """Hours from ``begin`` to ``end`` in the time zone; across midnight if ``end`` is earlier.

    When the clocks change they are one span, as a shift of a rota: a repeated hour does not end
    them, begin them again and end them twice.
    """

    begin: time
    end: time
    zone: ZoneInfo

    def contains(self, now: datetime) -> bool:
        """Whether ``now`` is within the quiet hours."""
        if self.begin == self.end:
            return False
        every_day = WeeklyShift("", frozenset(range(len(WEEKDAYS))), self.begin, self.end)
        return Rota("", self.zone, (every_day,)).on_call(now) is not None


class RateLimit(Struct, frozen=True):
    """Limits on the notifications of a target.

    ``critical_passes``: critical alerts are sent at once, regardless of cap and quiet hours, and do
    not count.
    """

    hourly_cap: int | None = None
    digest_every: timedelta | None = None
    quiet: QuietHours | None = None
    critical_passes: bool = False

    @property
    def reserved_for_digests(self) -> int:
        """Notifications per hour that are reserved for digests."""
        return 0 if self.digest_every is None else math.ceil(HOUR / self.digest_every)

    def bypassed_by(self, severity: str) -> bool:
        """Whether alerts of this severity are sent regardless of the limit."""
        return self.critical_passes and severity == "critical"

    def allows_single(self, sent: int, now: datetime) -> bool:
        """Whether an alert may be sent separately; ``sent``: notifications in the last hour."""
        if self.quiet is not None and self.quiet.contains(now):
            return False
        return self.hourly_cap is None or sent < self.hourly_cap - self.reserved_for_digests

    def allows_digest(self, sent: int, oldest: datetime, now: datetime, *, urgent: bool) -> bool:
        """Whether alerts held since ``oldest`` may be sent now as a digest.

        If one of them is ``urgent``, as soon as an alert could be sent separately, otherwise after
        ``digest_every`` (default: an hour).
        """
        if self.quiet is not None and self.quiet.contains(now):
            return False
        if urgent and self.allows_single(sent, now):
            return True
        overdue = now - oldest >= (self.digest_every or HOUR)
        return overdue and (self.hourly_cap is None or sent < self.hourly_cap)
