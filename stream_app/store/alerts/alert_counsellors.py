"""Which counsellor spoke when an alert was raised, in sessions with several counsellors."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final

import sqlalchemy as sa

from stream_app.contracts.events import Role
from stream_app.contracts.scores import AlertState
from stream_app.store.alerts.alerts import AlertRead
from stream_app.store.database.any_of import IDS, any_of
from stream_app.store.database.tables import turns
from stream_app.store.stream.repository import Store

_SPOKEN: Final = (
    sa.select(turns.c.session_id, turns.c.seq, turns.c.speaker)
    .where(any_of(turns.c.session_id, IDS), turns.c.role == Role.COUNSELLOR.value)
    .order_by(turns.c.session_id, turns.c.seq)
)
_RAISED: Final = (AlertState.PENDING, AlertState.FIRING)


def of_alerts(
    store: Store, found: Sequence[AlertRead], counsellors: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """Pseudonyms by alert: who spoke last when it was raised, or everybody if that is not known.

    ``counsellors``: of each session.
    """
    several = sorted({a.session_id for a in found if len(counsellors.get(a.session_id, ())) > 1})
    spoken: dict[str, list[tuple[int, str]]] = {}
    if several:
        with store.reading() as connection:
            for session_id, seq, speaker in connection.execute(_SPOKEN, {IDS: several}):
                spoken.setdefault(session_id, []).append((seq, speaker))
    return {
        alert.episode_id: _speaking(alert, spoken.get(alert.session_id, []))
        or list(counsellors.get(alert.session_id, ()))
        for alert in found
    }


def _speaking(alert: AlertRead, spoken: Sequence[tuple[int, str]]) -> list[str]:
    """The counsellor of the last turn up to the one that raised the alert; none if not known."""
    raised = [
        each.seq for each in alert.transitions if each.state in _RAISED and each.seq is not None
    ]
    if not raised:
        return []
    place = bisect_right(spoken, max(raised), key=lambda each: each[0])
    return [spoken[place - 1][1]] if place else []
