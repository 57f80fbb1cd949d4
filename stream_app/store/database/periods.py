"""Times in whole periods, for indexes of columns that change with every turn.

PostgreSQL updates a row in place, without a write to its indexes, if no indexed column changes. A
period changes rarely; a query selects by it first and then by the exact time.
"""

from datetime import datetime
from typing import Final

SEEN_SECONDS: Final = 600
"""Length of ``session_states.seen_period``; short compared with the time until sessions are idle.
"""
ACTIVITY_SECONDS: Final = 3600
"""Length of ``session_scores.activity_hour``."""


def seen_period(moment: datetime | None) -> int | None:
    """Number of ten-minute periods since 1970."""
    return None if moment is None else int(moment.timestamp() // SEEN_SECONDS)


def activity_hour(moment: datetime | None) -> int | None:
    """Number of hours since 1970."""
    return None if moment is None else int(moment.timestamp() // ACTIVITY_SECONDS)
