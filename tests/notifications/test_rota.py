"""Who is on call: changes of the clocks, midnight, overlaps, gaps."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.notifications.rota import DatedShift, Overlap, Rota, Shift, WeeklyShift

LONDON = ZoneInfo("Europe/London")
EVERY_DAY = frozenset(range(7))
SPRING = datetime(2026, 3, 29, tzinfo=UTC)
"""The clocks skip 01:00 to 02:00 local time."""
AUTUMN = datetime(2026, 10, 25, tzinfo=UTC)
"""They repeat 01:00 to 02:00."""


def rota(*shifts: Shift) -> Rota:
    return Rota("duty", LONDON, shifts)


def weekly(target: str, begin: str, end: str, days: frozenset[int] = EVERY_DAY) -> WeeklyShift:
    return WeeklyShift(target, days, time.fromisoformat(begin), time.fromisoformat(end))


def dated(target: str, begin: str, end: str) -> DatedShift:
    return DatedShift(target, datetime.fromisoformat(begin), datetime.fromisoformat(end))


def at(moment: str) -> datetime:
    """A local time in London."""
    return datetime.fromisoformat(moment).replace(tzinfo=LONDON)


ALWAYS = rota(weekly("anna", "08:00", "20:00"), weekly("ben", "20:00", "08:00"))


@pytest.mark.parametrize(
    ("moment", "who"),
    [
        ("2026-11-23T08:00", "anna"),
        ("2026-11-23T19:59:59", "anna"),
        ("2026-11-23T20:00", "ben"),
        ("2026-11-24T00:00", "ben"),
        ("2026-11-24T07:59:59", "ben"),
    ],
)
def test_a_shift_begins_at_its_time_and_ends_before_the_next_one(moment: str, who: str) -> None:
    assert ALWAYS.on_call(at(moment)) == who


def test_a_shift_belongs_to_the_day_on_which_it_begins() -> None:
    monday_night = rota(weekly("ben", "22:00", "06:00", frozenset({0})))
    assert monday_night.on_call(at("2026-11-24T05:00")) == "ben", "Tuesday morning"
    assert monday_night.on_call(at("2026-11-23T05:00")) is None, "Monday morning"
    assert monday_night.on_call(at("2026-11-24T23:00")) is None, "Tuesday night"


def test_a_shift_whose_times_are_equal_lasts_until_the_next_day() -> None:
    whole_day = rota(weekly("anna", "09:00", "09:00", frozenset({0})))
    assert whole_day.on_call(at("2026-11-24T08:59")) == "anna"
    assert whole_day.on_call(at("2026-11-24T09:00")) is None


@pytest.mark.parametrize("change", [SPRING, AUTUMN])
@pytest.mark.parametrize("border", ["00:30", "01:00", "01:15", "01:30", "02:00", "02:30"])
def test_shifts_that_meet_leave_no_gap_when_the_clocks_change(
    change: datetime, border: str
) -> None:
    shifts = rota(weekly("anna", "20:00", border), weekly("ben", border, "20:00"))
    begin, end = change - timedelta(days=2), change + timedelta(days=3)
    assert shifts.gaps(begin, end) == []
    assert shifts.overlaps(begin, end) == []


@pytest.mark.parametrize(("change", "hours"), [(SPRING, 11), (AUTUMN, 13)])
def test_a_night_shift_is_an_hour_shorter_or_longer_when_the_clocks_change(
    change: datetime, hours: int
) -> None:
    nights = rota(weekly("ben", "20:00", "08:00"))
    gaps = nights.gaps(change - timedelta(hours=12), change + timedelta(hours=12))
    [(_, evening), (morning, _)] = gaps
    assert morning - evening == timedelta(hours=hours)


def test_a_shift_within_the_skipped_hour_lasts_its_length_and_the_day_still_has_no_gap() -> None:
    shifts = rota(
        weekly("anna", "02:00", "01:00"),
        weekly("cleo", "01:00", "02:00"),
    )
    assert shifts.gaps(SPRING - timedelta(days=1), SPRING + timedelta(days=1)) == []


def test_gaps_are_reported_with_their_borders() -> None:
    office = rota(weekly("anna", "09:00", "17:00", frozenset({0, 1})))
    begin, end = at("2026-11-23T12:00"), at("2026-11-25T00:00")
    assert office.gaps(begin, end) == [
        (at("2026-11-23T17:00"), at("2026-11-24T09:00")),
        (at("2026-11-24T17:00"), end),
    ]


def test_a_rota_whose_dated_shifts_are_over_is_one_gap() -> None:
    past = rota(dated("anna", "2026-01-01T00:00", "2026-02-01T00:00"))
    begin, end = at("2026-11-23T00:00"), at("2026-12-21T00:00")
    assert past.gaps(begin, end) == [(begin, end)]
    assert past.on_call(begin) is None


def test_a_dated_shift_replaces_the_weekly_ones_without_being_an_overlap() -> None:
    holiday = rota(
        weekly("anna", "00:00", "00:00"), dated("cleo", "2026-12-24T18:00", "2026-12-26T08:00")
    )
    assert holiday.on_call(at("2026-12-24T17:59")) == "anna"
    assert holiday.on_call(at("2026-12-25T12:00")) == "cleo"
    assert holiday.on_call(at("2026-12-26T08:00")) == "anna"
    assert holiday.overlaps(at("2026-12-20T00:00"), at("2026-12-30T00:00")) == []


def test_of_overlapping_shifts_the_first_in_the_file_is_on_call_and_the_overlap_is_reported() -> (
    None
):
    both = rota(weekly("ben", "12:00", "20:00"), weekly("anna", "08:00", "14:00"))
    assert both.on_call(at("2026-11-23T11:00")) == "anna"
    assert both.on_call(at("2026-11-23T13:00")) == "ben"
    assert both.overlaps(at("2026-11-23T00:00"), at("2026-11-24T00:00")) == [
        Overlap(at("2026-11-23T12:00"), at("2026-11-23T14:00"), "ben", "anna")
    ]


@given(
    begin=st.times(timezones=st.none()).map(lambda t: t.replace(second=0, microsecond=0)),
    end=st.times(timezones=st.none()).map(lambda t: t.replace(second=0, microsecond=0)),
    days=st.frozensets(st.integers(0, 6), min_size=1),
    start=st.sampled_from([SPRING, AUTUMN, datetime(2026, 11, 23, tzinfo=UTC)]),
    minutes=st.integers(-3000, 3000),
)
def test_nobody_is_on_call_exactly_in_the_gaps(
    begin: time, end: time, days: frozenset[int], start: datetime, minutes: int
) -> None:
    shifts = rota(WeeklyShift("anna", days, begin, end))
    now = start + timedelta(minutes=minutes)
    gaps = shifts.gaps(start - timedelta(days=4), start + timedelta(days=4))
    in_a_gap = any(one <= now < other for one, other in gaps)
    assert (shifts.on_call(now) is None) == in_a_gap
