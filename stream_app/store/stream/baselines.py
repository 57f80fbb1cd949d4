"""Baselines of channels and counsellors: computed from ended sessions, read by the worker.

Counsellors are identified by their pseudonyms.
"""

import statistics
import threading
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import sqlalchemy as sa
from msgspec import Struct

from stream_app.contracts.events import Role
from stream_app.contracts.scores import SessionStatus
from stream_app.core.measures.baselines import Baseline, Usual
from stream_app.core.measures.catalogue import MEASURES
from stream_app.store.database.tables import baselines, session_scores, sessions, turns
from stream_app.store.stream.repository import Store

MIN_SESSIONS: Final = 20
CHANNEL: Final = "channel"
COUNSELLOR: Final = "counsellor"
_ENDED: Final = (SessionStatus.CLOSED.value, SessionStatus.IDLE.value)
_MEASURES: Final = {each.usual: each.name for each in MEASURES if each.usual}


class RefreshSummary(Struct, frozen=True):
    """Numbers of ended sessions considered, and of channels and counsellors with a baseline."""

    sessions: int
    channels: int
    counsellors: int


class StoredBaselines:
    """Adapter of the core's ``BaselineBook``: the table in memory, until ``reload``."""

    def __init__(self, store: Store, bundle: str) -> None:
        self._store = store
        self._bundle = bundle
        self._lock = threading.Lock()
        self._found: dict[tuple[str, str], Baseline] | None = None

    def of_channel(self, channel: str) -> Baseline | None:
        """The channel's baseline, or None."""
        return self._known().get((CHANNEL, channel))

    def of_counsellor(self, speaker_id: str) -> Baseline | None:
        """The counsellor's baseline, looked up by pseudonym, or None."""
        return self._known().get((COUNSELLOR, self._store.privacy.pseudonym(speaker_id)))

    def reload(self) -> None:
        """Read the table again.

        Raises:
            StoreError: the database does not answer.
        """
        found = read(self._store, self._bundle)
        with self._lock:
            self._found = found

    def _known(self) -> dict[tuple[str, str], Baseline]:
        if self._found is None:
            self.reload()
        with self._lock:
            return self._found or {}


def read(store: Store, bundle: str) -> dict[tuple[str, str], Baseline]:
    """All baselines of a bundle by scope (channel or counsellor) and key."""
    query = sa.select(baselines).where(baselines.c.bundle == bundle)
    usual: dict[tuple[str, str], dict[str, Usual]] = defaultdict(dict)
    with store.reading() as connection:
        for row in connection.execute(query):
            usual[row.scope, row.key][row.measure] = Usual(row.n, row.mean, row.sd)
    return {key: Baseline(**measures) for key, measures in usual.items()}


def refresh(
    store: Store, bundle: str, now: datetime, days: int, min_sessions: int = MIN_SESSIONS
) -> RefreshSummary:
    """Recompute the bundle's baselines in one transaction.

    Args:
        store: the open store.
        bundle: the bundle whose scores are used; baselines of others are kept.
        now: stored as ``as_of``.
        days: only sessions active within this many days are used.
        min_sessions: a channel or counsellor with fewer ended sessions gets no baseline.
    """
    ended = (
        sa.select(
            session_scores.c.session_id,
            *(session_scores.c[column] for column in _MEASURES.values()),
        )
        .where(
            session_scores.c.bundle == bundle,
            session_scores.c.status.in_(_ENDED),
            session_scores.c.last_activity_at >= now - timedelta(days=days),
        )
        .subquery()
    )
    measures = [ended.c[column] for column in _MEASURES.values()]
    of_channels = (
        sa.select(sessions.c.channel, *measures)
        .join(ended, ended.c.session_id == sessions.c.session_id)
        .where(sessions.c.channel.is_not(None))
    )
    counselled = (
        sa.select(turns.c.session_id, turns.c.speaker)
        .where(turns.c.role == Role.COUNSELLOR.value)
        .distinct()
        .subquery()
    )
    of_counsellors = sa.select(counselled.c.speaker, *measures).join(
        ended, ended.c.session_id == counselled.c.session_id
    )
    with store.transaction() as connection:
        count = int(connection.scalar(sa.select(sa.func.count()).select_from(ended)) or 0)
        found = {
            CHANNEL: _statistics(map(tuple, connection.execute(of_channels)), min_sessions),
            COUNSELLOR: _statistics(map(tuple, connection.execute(of_counsellors)), min_sessions),
        }
        connection.execute(sa.delete(baselines).where(baselines.c.bundle == bundle))
        rows = [
            {
                "scope": scope,
                "key": key,
                "bundle": bundle,
                "measure": measure,
                "n": usual.n,
                "mean": usual.mean,
                "sd": usual.sd,
                "as_of": now,
            }
            for scope, by_key in found.items()
            for (key, measure), usual in sorted(by_key.items())
        ]
        store.upsert(connection, baselines, rows, keep=False)
    return RefreshSummary(
        count, *(len({key for key, _ in found[s]}) for s in (CHANNEL, COUNSELLOR))
    )


def _statistics(
    rows: Iterable[tuple[str, *tuple[float | None, ...]]], min_sessions: int
) -> dict[tuple[str, str], Usual]:
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for key, *numbers in rows:
        for measure, number in zip(_MEASURES, numbers, strict=True):
            if number is not None:
                values[key, measure].append(number)
    return {
        key: Usual(len(found), statistics.fmean(found), statistics.stdev(found))
        for key, found in values.items()
        if len(found) >= max(2, min_sessions)
    }
