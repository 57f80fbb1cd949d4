"""What waits for a supervisor: the numbers that the navigation of every page shows."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from stream_app.store.sessions.scope import SCOPES, Scope
from stream_app.store.stream.repository import Store
from stream_app.store.work import disputes, reviews


@dataclass(frozen=True, slots=True)
class WaitingWork:
    """Numbers of a person's open reviews, and of disputes in their scope without an answer."""

    reviews: int = 0
    disputes: int = 0


def read(store: Store, scope: Scope, reviewer: str) -> WaitingWork:
    """Count both by one statement."""
    with store.reading() as connection:
        found = connection.execute(_both(scope), {"given_to": reviewer}).one()
    return WaitingWork(found.reviews, found.disputes)


@lru_cache(maxsize=SCOPES)
def _both(scope: Scope) -> sa.Select[Any]:
    return sa.select(
        reviews.select_open(scope).scalar_subquery().label("reviews"),
        disputes.select_waiting(scope).scalar_subquery().label("disputes"),
    )
