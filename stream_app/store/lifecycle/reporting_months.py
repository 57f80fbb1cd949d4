"""Weeks and months that nest, so that sums over weeks are sums over months.

A week begins on Monday. A reporting month consists of the weeks whose Thursday lies in it, as an
ISO year does.
"""

from datetime import date, timedelta


def monday_of(day: date) -> date:
    """The Monday of a day's week.

    >>> monday_of(date(2026, 7, 5))
    datetime.date(2026, 6, 29)
    """
    return day - timedelta(days=day.weekday())


def month_of(week: date) -> date:
    """The first of the reporting month of the week that begins on this Monday.

    >>> month_of(date(2026, 6, 29)), month_of(date(2026, 4, 27))
    (datetime.date(2026, 7, 1), datetime.date(2026, 4, 1))
    """
    return (week + timedelta(days=3)).replace(day=1)


def first_week(month: date) -> date:
    """The Monday with which a reporting month begins: the fourth lies in its first week.

    >>> first_week(date(2026, 7, 1)), first_week(date(2026, 5, 1))
    (datetime.date(2026, 6, 29), datetime.date(2026, 5, 4))
    """
    fourth = month.replace(day=4)
    return monday_of(fourth)


def end_of(month: date) -> date:
    """The first day after a reporting month."""
    return first_week((month.replace(day=1) + timedelta(days=32)).replace(day=1))
