"""Rotas: whose target is on call at a given moment.

Shifts are written in local time. A dated shift, such as a holiday's, replaces the weekly shifts
during its time; of overlapping shifts of one kind the first in the file counts, so that exactly one
person is on call.

A local time that a change of the clocks skips or repeats is the same moment as the end of one shift
and as the beginning of the next, so a change leaves no gap between shifts that meet.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
LOOK_AHEAD: Final = timedelta(weeks=4)
"""How far gaps are reported in advance."""
_DAY: Final = timedelta(days=1)


class WeeklyShift(Struct, frozen=True):
    """A shift from ``begin`` on each of these days until the next ``end``; at most 24 hours.

    ``days``: numbers of weekdays, Monday is 0.
    """

    target: str
    days: frozenset[int]
    begin: time
    end: time


class DatedShift(Struct, frozen=True):
    """A shift from ``begin`` to ``end``, without a zone."""

    target: str
    begin: datetime
    end: datetime


Shift = WeeklyShift | DatedShift


class Span(Struct, frozen=True):
    """A shift's time in UTC; ``rank``: the lowest of those on call at once counts."""

    begin: datetime
    end: datetime
    rank: tuple[bool, int]
    target: str


class Overlap(Struct, frozen=True):
    """Two shifts of one kind at the same time; ``first`` is on call."""

    begin: datetime
    end: datetime
    first: str
    second: str


class Rota(Struct, frozen=True):
    """Shifts of several targets in one time zone."""

    name: str
    zone: ZoneInfo
    shifts: tuple[Shift, ...]

    def on_call(self, now: datetime) -> str | None:
        """The target that is on call; None: nobody."""
        found = [span for span in self._spans(now, now) if span.begin <= now < span.end]
        return min(found, key=lambda span: span.rank).target if found else None

    def gaps(self, begin: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
        """Times between ``begin`` and ``end`` in which nobody is on call."""
        found, covered = [], begin
        for span in sorted(self._spans(begin, end), key=lambda span: span.begin):
            if span.begin >= end:
                break
            if span.begin > covered:
                found.append((covered, span.begin))
            covered = max(covered, span.end)
        if covered < end:
            found.append((covered, end))
        return found

    def overlaps(self, begin: datetime, end: datetime) -> list[Overlap]:
        """Times in which the order of the file decides between two targets."""
        spans = sorted(self._spans(begin, end), key=lambda span: span.begin)
        found = []
        for index, one in enumerate(spans):
            for other in spans[index + 1 :]:
                if other.begin >= one.end:
                    break
                if one.rank[0] == other.rank[0] and one.target != other.target:
                    first, second = sorted((one, other), key=lambda span: span.rank)
                    until = min(one.end, other.end)
                    if other.begin < end and until > begin:
                        found.append(Overlap(other.begin, until, first.target, second.target))
        return found

    def _spans(self, begin: datetime, end: datetime) -> list[Span]:
        """All spans of shifts between two moments, and some around them."""
        first = _local_date(begin, self.zone, -_DAY)
        last = _local_date(end, self.zone, _DAY)
        found = []
        for number, shift in enumerate(self.shifts):
            dated = isinstance(shift, DatedShift)
            for span_begin, span_end in _times(shift, self.zone, first, last):
                if span_begin < span_end:  # else the clocks skip it
                    found.append(Span(span_begin, span_end, (not dated, number), shift.target))
        return found


def _times(
    shift: Shift, zone: ZoneInfo, first: date, last: date
) -> Iterator[tuple[datetime, datetime]]:
    if isinstance(shift, DatedShift):
        yield _in_utc(shift.begin, zone), _in_utc(shift.end, zone)
        return
    for number in range((last - first).days + 1):
        day = first + number * _DAY
        if day.weekday() in shift.days:
            until = day if shift.end > shift.begin else day + _DAY
            yield (
                _in_utc(datetime.combine(day, shift.begin), zone),
                _in_utc(datetime.combine(until, shift.end), zone),
            )


def _in_utc(local: datetime, zone: ZoneInfo) -> datetime:
    return local.replace(tzinfo=zone).astimezone(UTC)


def _local_date(moment: datetime, zone: ZoneInfo, more: timedelta) -> date:
    """The local date, and a day before or after: shifts may cross midnight."""
    return (moment.astimezone(zone) + more).date()
