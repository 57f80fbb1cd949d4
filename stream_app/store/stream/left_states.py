"""What bundles that are no longer in force have left: states, scores and alerts without an end.

A state belongs to the default bundle of its time. When another one comes into force, or an earlier
one again, sessions continue with that one, and nothing continues or ends what was left behind. The
same holds for a routed bundle that was removed while a session was idle. The state stays, so that a
worker with that bundle could still continue the session; its alerts then begin new episodes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
import structlog
from msgspec import Struct
from sqlalchemy import Connection

from stream_app.contracts.scores import Alert, AlertState, SessionStatus
from stream_app.core.session.alerting import end_stored, end_with_bundle
from stream_app.core.session.ports import Message
from stream_app.core.session.session_state import Versioned
from stream_app.errors import RowRefused
from stream_app.store.database import rows, session_locks, tables
from stream_app.store.database.clocks import database_now
from stream_app.store.database.periods import seen_period
from stream_app.store.stream import commit, left_scores
from stream_app.store.stream.repository import Store

log = structlog.get_logger(__name__)

AT_ONCE: Final = 200
_states: Final = tables.session_states
_alerts: Final = tables.alerts
_scores: Final = tables.session_scores
_own: Final = tables.session_states.alias()


class LeftBehind(Struct, frozen=True):
    """A session that nobody continues under a bundle; ``status``: what it becomes there."""

    session_id: str
    bundle: str
    status: SessionStatus


class Closed(Struct, frozen=True):
    """The sessions and alerts that were ended; an outbox row has the messages, if any."""

    session_ids: list[str]
    alerts: list[Alert]
    messages: list[Message]
    outbox_id: int | None


Messages = Callable[[Sequence[Alert]], list[Message]]


def close(
    store: Store,
    in_force: Sequence[str],
    before: datetime,
    partitions: Sequence[int],
    messages: Messages,
    limit: int = AT_ONCE,
) -> Closed | None:
    """Close states of other bundles than the default one, the first ``in_force``; None without any.

    Those of sessions that have ended under it are closed, and those last heard of before ``before``
    are idle. Their alerts end. Turns that were still waiting for following ones get their
    provisional score as the final one (``left_scores``).
    """
    bundle = in_force[0]
    query = (
        sa.select(_states.c.session_id, _states.c.bundle, _ended(bundle, _states.c.session_id))
        .where(
            _states.c.bundle.in_(_others([bundle])),
            _states.c.partition.in_(partitions),
            sa.or_(
                sa.and_(
                    _states.c.status != SessionStatus.CLOSED.value,
                    _ended(bundle, _states.c.session_id),
                ),
                sa.and_(
                    _states.c.status == SessionStatus.OPEN.value,
                    _states.c.seen_period <= seen_period(before),
                    _states.c.seen_at < before,
                ),
            ),
        )
        .order_by(_states.c.session_id)
        .limit(limit)
    )
    return _end(store, in_force, _found(store, query), messages)


def sweep(
    store: Store,
    in_force: Sequence[str],
    partitions: Sequence[int],
    messages: Messages,
    limit: int = AT_ONCE,
) -> Closed | None:
    """End scores and alerts of bundles not ``in_force``, of sessions that are not live under them.

    Finds what ``close`` and the sessions' own events do not: of sessions that were idle when their
    bundle was removed, whose state has expired, or that an earlier release has left. Reads all
    alerts, so call it seldom.
    """
    query = _unfinished(in_force, partitions)
    return _end(store, in_force, _found(store, query.limit(limit)), messages)


def count(store: Store, in_force: Sequence[str]) -> dict[str, int]:
    """Number of sessions that a bundle has left without an end, by this bundle.

    Those that have ended under the default bundle, the first ``in_force``, and those that ``sweep``
    finds.
    """
    bundle = in_force[0]
    ended = sa.select(_states.c.session_id, _states.c.bundle).where(
        _states.c.bundle != bundle,
        _states.c.status != SessionStatus.CLOSED.value,
        _ended(bundle, _states.c.session_id),
    )
    unfinished = _unfinished(in_force).subquery()
    both = ended.union(sa.select(unfinished.c.session_id, unfinished.c.bundle))
    with store.reading() as connection:
        found = Counter(name for _, name in connection.execute(both))
    return dict(sorted(found.items()))


def _unfinished(in_force: Sequence[str], partitions: Sequence[int] | None = None) -> sa.Select[Any]:
    """Sessions with open scores or alerts of a bundle not in force, without an open state of it."""
    others = _others(in_force)
    both = sa.union(
        sa.select(_scores.c.session_id, _scores.c.bundle).where(
            _scores.c.status == SessionStatus.OPEN.value, _scores.c.bundle.in_(others)
        ),
        sa.select(_alerts.c.session_id, _alerts.c.bundle).where(
            _alerts.c.bundle.in_(others), _is_last()
        ),
    ).subquery()
    state = _states.alias()
    of_it = state.c.session_id == both.c.session_id
    live = sa.exists().where(
        of_it, state.c.bundle == both.c.bundle, state.c.status == SessionStatus.OPEN.value
    )
    known = sa.exists().where(tables.sessions.c.session_id == both.c.session_id)
    query = sa.select(
        both.c.session_id, both.c.bundle, _ended(in_force[0], both.c.session_id)
    ).where(known, ~live)
    if partitions is not None:
        mine = sa.exists().where(of_it, state.c.partition.in_(partitions))
        query = query.where(mine | ~sa.exists().where(of_it))
    return query.order_by(both.c.session_id, both.c.bundle)


def _is_last() -> sa.ColumnElement[bool]:
    """Whether an alert's transition is the last of one that is pending or firing."""
    later = _alerts.alias()
    ends = (AlertState.RESOLVED.value, AlertState.INACTIVE.value)
    further = sa.or_(
        later.c.state.in_(ends),
        sa.and_(
            later.c.state == AlertState.FIRING.value, _alerts.c.state == AlertState.PENDING.value
        ),
    )
    return sa.and_(
        _alerts.c.state.in_((AlertState.PENDING.value, AlertState.FIRING.value)),
        ~sa.exists().where(later.c.episode_id == _alerts.c.episode_id, further).correlate(_alerts),
    )


def _ended(bundle: str, session_id: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    return sa.exists().where(
        _own.c.session_id == session_id,
        _own.c.bundle == bundle,
        _own.c.status == SessionStatus.CLOSED.value,
    )


def _others(in_force: Sequence[str]) -> sa.ScalarSelect[str]:
    known = tables.bundles
    return sa.select(known.c.bundle).where(known.c.bundle.not_in(in_force)).scalar_subquery()


def _found(store: Store, query: sa.Select[Any]) -> list[LeftBehind]:
    with store.reading() as connection:
        found = connection.execute(query).all()
    return [
        LeftBehind(session_id, bundle, SessionStatus.CLOSED if ended else SessionStatus.IDLE)
        for session_id, bundle, ended in found
    ]


def _end(
    store: Store, in_force: Sequence[str], found: Sequence[LeftBehind], messages: Messages
) -> Closed | None:
    if not found:
        return None
    session_ids = list(dict.fromkeys(each.session_id for each in found))
    with store.transaction() as connection:
        session_locks.lock(connection, session_ids)
        hidden = _hidden(connection, session_ids)
        open_alerts = _open_alerts(connection, in_force, found)
        ended = [end_stored(alert, at) for alert, at in open_alerts]
        sent = messages([alert for alert in ended if not hidden[alert.session_id]])
        states = _states_without_alerts(store, in_force[0], ended)
        commit.write_states(connection, store, store.states, states)
        store.upsert(connection, _alerts, [rows.alert_row(alert) for alert in ended], keep=True)
        for each in found:
            _finish(connection, in_force, each)
        marks = [{"session_id": key, "month": None} for key in session_ids if key in hidden]
        store.upsert(connection, tables.rollup_marks, marks, keep=True)
        outbox_id = commit.write_outbox(connection, sent, database_now(connection))
    return Closed(session_ids, ended, sent, outbox_id)


def _open_alerts(
    connection: Connection, in_force: Sequence[str], found: Sequence[LeftBehind]
) -> list[tuple[Alert, datetime]]:
    """The last transitions of alerts that nothing will end, and when their sessions were over.

    Of a session that has ended, these are all alerts.
    """
    over = {each.session_id for each in found if each.status is SessionStatus.CLOSED}
    left = {(each.session_id, each.bundle) for each in found}
    sessions = tables.sessions
    at = sa.func.coalesce(sessions.c.ended_at, sessions.c.last_activity_at)
    query = (
        sa.select(*_alerts.c, sa.type_coerce(at, tables.UtcDateTime()).label("over_at"))
        .join(sessions, sessions.c.session_id == _alerts.c.session_id)
        .where(_alerts.c.session_id.in_({each.session_id for each in found}), _is_last())
        .order_by(_alerts.c.session_id, _alerts.c.occurred_at, _alerts.c.alert_id)
    )
    result = []
    for row in connection.execute(query).mappings():
        where = row["session_id"], row["bundle"]
        if where in left or row["bundle"] not in in_force or row["session_id"] in over:
            alert = rows.stored_alert(row)
            result.append((alert, row["over_at"] or alert.occurred_at))
    return result


def _hidden(connection: Connection, session_ids: Sequence[str]) -> dict[str, bool]:
    """Map the sessions that exist to whether they are hidden from consumers."""
    table = tables.sessions
    query = sa.select(table.c.session_id, table.c.hidden)
    return dict(connection.execute(query.where(table.c.session_id.in_(session_ids))).all())


def _states_without_alerts(
    store: Store, default: str, ended: Sequence[Alert]
) -> list[tuple[Versioned, SessionStatus]]:
    """The states whose alerts these are, without them, so that they can begin new episodes."""
    found = []
    statuses = _statuses(store, {alert.session_id for alert in ended})
    for session_id, bundle in dict.fromkeys((alert.session_id, alert.bundle) for alert in ended):
        for key in dict.fromkeys((bundle, default)):
            status = statuses.get((session_id, key))
            versioned = _loaded(store, session_id, key) if status is not None else None
            if status is None or versioned is None or not versioned.key:
                continue
            state = versioned.state
            scored_by = state.chosen.bundle if state.chosen is not None else state.bundle
            if scored_by == bundle and end_with_bundle(state, bundle):
                found.append((versioned, status))
    return found


def _statuses(store: Store, session_ids: Iterable[str]) -> dict[tuple[str, str], SessionStatus]:
    query = sa.select(_states.c.session_id, _states.c.bundle, _states.c.status)
    with store.reading() as connection:
        found = connection.execute(query.where(_states.c.session_id.in_(session_ids))).all()
    return {(session_id, bundle): SessionStatus(status) for session_id, bundle, status in found}


def _loaded(store: Store, session_id: str, bundle: str) -> Versioned | None:
    try:
        return store.load_states([session_id], bundle).get(session_id)
    except RowRefused as problem:  # a damaged state continues nothing
        log.error("left.state_damaged", detail=str(problem))
        return None


def _finish(connection: Connection, in_force: Sequence[str], each: LeftBehind) -> None:
    """End a session under a bundle, and under those that no state of it names."""
    scored = sa.select(_scores.c.bundle).where(_scores.c.session_id == each.session_id)
    for bundle in connection.scalars(scored).all():
        over = each.status is SessionStatus.CLOSED and bundle != in_force[0]
        if over or bundle == each.bundle or bundle not in in_force:
            left_scores.finish(connection, each.session_id, bundle, each.status)
    connection.execute(
        sa.update(_states)
        .where(
            _states.c.session_id == each.session_id,
            _states.c.bundle == each.bundle,
            _states.c.status != SessionStatus.CLOSED.value,
        )
        .values(status=each.status.value)
    )
