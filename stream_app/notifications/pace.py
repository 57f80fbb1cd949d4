"""How often one target is told: the hourly cap, quiet hours, and when a digest is due.

Everything here is a pure function of what was told and of the time.

The cap counts every notification, digests too, so nobody gets more than ``hourly_cap`` in any
rolling hour. With ``digest_every`` some of them are kept for digests, so that what is over the cap
waits at most that long: of 6, with a digest every 30 minutes, 4 come one by one::

    10:00 ● ● ● ●  (7 alerts: 4 told, 3 held)   10:30 ▤  (digest of 3)   11:00 ● ● ● ● again
"""

import math
from datetime import datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct

HOUR: Final = timedelta(hours=1)


class QuietHours(Struct, frozen=True):
    """From ``begin`` to ``end`` on the clock of ``zone``; over midnight if the end is earlier."""

    begin: time
    end: time
    zone: ZoneInfo

    def hold(self, now: datetime) -> bool:
        """Whether ``now`` is in them."""
        local = now.astimezone(self.zone).time()
        if self.begin <= self.end:
            return self.begin <= local < self.end
        return local >= self.begin or local < self.end


class Pace(Struct, frozen=True):
    """How often a target wants to be told.

    ``critical_passes``: critical alerts are told at once, whatever was told before and at any
    hour, and do not count.
    """

    hourly_cap: int | None = None
    digest_every: timedelta | None = None
    quiet: QuietHours | None = None
    critical_passes: bool = False

    @property
    def kept_for_digests(self) -> int:
        """How many of an hour's notifications are never used one by one."""
        return 0 if self.digest_every is None else math.ceil(HOUR / self.digest_every)

    def passes(self, severity: str) -> bool:
        """Whether an alert of this severity is told whatever was told before."""
        return self.critical_passes and severity == "critical"

    def may_tell(self, told: int, now: datetime) -> bool:
        """Whether one more may come by itself after ``told`` in the last hour."""
        if self.quiet is not None and self.quiet.hold(now):
            return False
        return self.hourly_cap is None or told < self.hourly_cap - self.kept_for_digests

    def may_digest(self, told: int, oldest: datetime, now: datetime, *, urgent: bool) -> bool:
        """Whether what has been held since ``oldest`` may come now.

        As soon as one might come by itself if something in it is ``urgent``, otherwise after
        ``digest_every`` (an hour if that is not set).
        """
        if self.quiet is not None and self.quiet.hold(now):
            return False
        if urgent and self.may_tell(told, now):
            return True
        late = now - oldest >= (self.digest_every or HOUR)
        return late and (self.hourly_cap is None or told < self.hourly_cap)
