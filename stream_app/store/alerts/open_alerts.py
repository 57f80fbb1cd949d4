"""Open alerts of open sessions as the wall shows them, without transitions and actions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import sqlalchemy as sa

from stream_app.contracts.scores import AlertState
from stream_app.store.alerts.alerts import (
    AlertFilter,
    ShownState,
    is_muted,
    mutes_in_force,
    select_episodes,
)
from stream_app.store.database.tables import alerts, sessions
from stream_app.store.sessions.scope import SCOPES, Scope
from stream_app.store.stream.repository import Store

MOST: Final = 5000
"""Open alerts at a time; of more, those that began last."""
_URGENCY: Final = (ShownState.FIRING, ShownState.ACKNOWLEDGED)


@dataclass(frozen=True, slots=True)
class OpenAlert:
    """An alert that has fired and that nobody has resolved; ``began_at``: pending or firing.

    ``reason``: why it fired.
    """

    episode_id: str
    session_id: str
    rule: str
    state: ShownState
    began_at: datetime
    muted: bool
    reason: str

    @property
    def is_unanswered(self) -> bool:
        """Whether it fires, unmuted, and nobody has acknowledged it."""
        return self.state is ShownState.FIRING and not self.muted


def by_session(
    store: Store, scope: Scope, session_id: str | None = None
) -> dict[str, list[OpenAlert]]:
    """Open alerts by session: firing ones before acknowledged ones, the newest first.

    ``session_id``: of this session alone.
    """
    query = _open_alerts(scope, one_session=session_id is not None)
    given = {} if session_id is None else {"session_id": session_id}
    with store.reading() as connection:
        rows = connection.execute(query, given).all()
        muting = mutes_in_force(connection, datetime.now(UTC)) if rows else []
    found: dict[str, list[OpenAlert]] = {}
    for row in rows:
        alert = _alert(row, muting)
        found.setdefault(alert.session_id, []).append(alert)
    for of_one in found.values():
        of_one.sort(key=lambda alert: (alert.muted, _URGENCY.index(alert.state)))
    return found


@lru_cache(maxsize=2 * SCOPES)
def _open_alerts(scope: Scope, *, one_session: bool) -> sa.Select[Any]:
    """The newest first."""
    chosen = AlertFilter(states=frozenset(_URGENCY), fired=True, live=True)
    episodes = select_episodes(scope, chosen)
    query = (
        sa.select(
            episodes.c.episode_id,
            episodes.c.session_id,
            episodes.c.rule,
            episodes.c.shown,
            episodes.c.began_at,
            sessions.c.team,
            alerts.c.reason,
        )
        .join(
            alerts,
            (alerts.c.episode_id == episodes.c.episode_id)
            & (alerts.c.state == AlertState.FIRING.value),
        )
        .join(sessions, sessions.c.session_id == episodes.c.session_id)
        .order_by(episodes.c.began_at.desc(), episodes.c.episode_id)
        .limit(MOST)
    )
    if one_session:
        query = query.where(episodes.c.session_id == sa.bindparam("session_id"))
    return query


def _alert(row: sa.Row[Any], muting: Sequence[sa.RowMapping]) -> OpenAlert:
    return OpenAlert(
        row.episode_id,
        row.session_id,
        row.rule,
        ShownState(row.shown),
        row.began_at,
        is_muted(muting, row.rule, row.session_id, row.team),
        row.reason,
    )
