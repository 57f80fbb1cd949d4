"""Erases sessions: their keys, all of their rows, and unpublished messages.

Without its key, remaining copies of a session's text cannot be decrypted. The audit trail is kept:
it records who read what, and contains no dialogue; an erased session appears in it as a keyed
digest of its id (``audit_subjects``). The same digest ensures that a worker that re-reads the log,
or has the session in memory, does not store it again.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random

from stream_app.core.session.ports import Message
from stream_app.errors import RolledBack
from stream_app.store.database import audit_subjects, tables
from stream_app.store.lifecycle import erasure_receipts, rollup_marks
from stream_app.store.lifecycle.erasure_receipts import Removed
from stream_app.store.lifecycle.holds import refuse_held
from stream_app.store.stream import outbox as outbox_codec
from stream_app.store.stream.repository import Store

SESSIONS_PER_BATCH: Final = 200
_ATTEMPTS: Final = 5
_FIRST: Final = (tables.session_states, tables.sessions, tables.session_keys)
_LAST: Final = (tables.rollup_turns, tables.rollup_sessions, tables.rollup_marks)
SESSION_TABLES: Final = (
    *_FIRST,
    *(
        table
        for table in tables.metadata.sorted_tables
        if "session_id" in table.c and table not in (*_FIRST, *_LAST, tables.holds)
    ),
    *_LAST,
)
"""States and sessions first: this waits for concurrent writers, and makes later ones fail.

The roll-ups last, in the order in which they are computed. A session with a row in ``holds`` is not
erased.
"""
CLOCK_TOLERANCE: Final = timedelta(minutes=10)


class StoredCounts(Struct, frozen=True):
    """Numbers of stored sessions and turns that an erasure would remove."""

    sessions: int
    turns: int


class Erased(Struct, frozen=True):
    """The effect of an erasure on the database.

    ``removed``: deleted rows by table, including keys. ``reasons``: number of deleted reasons of
    mutes of a rule or team. ``audited``: number of entries of the audit trail about the sessions.
    ``outbox_ids``: outbox rows with the notifications of consumers. ``receipts``: ids of the
    receipts, which are finished after topics and archive.
    """

    removed: Counter[str]
    reasons: int
    audited: int
    outbox_ids: list[int]
    receipts: list[int]


class _ErasedOne(Struct, frozen=True):
    """The effect of one session's erasure; see ``Erased``."""

    removed: Counter[str]
    reasons: int
    audited: int
    outbox_ids: list[int]
    receipt: int


def sessions_of(store: Store, speaker_id: str) -> list[str]:
    """Sessions in which a speaker took part; ``speaker_id`` as in the events."""
    table = tables.session_speakers
    query = (
        sa.select(table.c.session_id)
        .distinct()
        .where(table.c.speaker == store.privacy.pseudonym(speaker_id))
        .order_by(table.c.session_id)
    )
    with store.reading() as connection:
        return list(connection.scalars(query))


def count_stored(store: Store, session_ids: Sequence[str]) -> StoredCounts:
    """Number of stored sessions and turns among ``session_ids``."""
    sessions = turns = 0
    with store.reading() as connection:
        for some in batches(session_ids):
            sessions += _count(connection, tables.sessions, some)
            turns += _count(connection, tables.turns, some)
    return StoredCounts(sessions, turns)


def erase(
    store: Store, session_ids: Sequence[str], now: datetime, topics: Sequence[str] = ()
) -> Erased:
    """Destroy the sessions' keys and erase the sessions permanently, one transaction each.

    ``topics``: keyed by session id; their consumers are notified by records without a value.

    Raises:
        SessionHeld: one of them is on legal hold; none was erased.
        StoreError: the database failed; already erased sessions stay erased.
    """
    for some in batches(session_ids):
        with store.transaction() as connection:
            refuse_held(connection, some)
    trying = Retrying(
        retry=retry_if_exception_type(RolledBack),
        wait=wait_random(max=0.2),
        stop=stop_after_attempt(_ATTEMPTS),
        reraise=True,
    )
    erased = [trying(_erase_one, store, key, now, topics) for key in session_ids]
    return Erased(
        sum((one.removed for one in erased), Counter()),
        sum(one.reasons for one in erased),
        sum(one.audited for one in erased),
        [outbox_id for one in erased for outbox_id in one.outbox_ids],
        [one.receipt for one in erased],
    )


def _erase_one(store: Store, key: str, now: datetime, topics: Sequence[str]) -> _ErasedOne:
    digest = store.privacy.pseudonym(key)
    with store.transaction() as connection:
        refuse_held(connection, [key])
        store.upsert(connection, tables.erasures, [{"digest": digest, "at": now}], keep=True)
        archived = _count(connection, tables.archived_sessions, [key]) > 0
        cleared = _delete_mute_reasons(connection, [key])
        removed = delete_sessions(connection, [key])
        entries = audit_subjects.erase_session(connection, key, digest)
        what = Removed(dict(removed), cleared, entries)
        receipt = erasure_receipts.add(connection, digest, key, what, now, archived=archived)
        outbox_ids = _notify_consumers(connection, [key], topics, now)
    return _ErasedOne(removed, cleared, entries, outbox_ids, receipt)


def forget_counsellor(store: Store, speaker_id: str) -> Counter[str]:
    """Delete a counsellor's baselines, goals and saved views, and the pseudonym in the audit trail.

    Returns the number of deleted rows by table.
    """
    table, views = tables.baselines, tables.saved_views
    pseudonym = store.privacy.pseudonym(speaker_id)
    with store.transaction() as connection:
        deleted = connection.execute(
            sa.delete(table).where(table.c.scope == "counsellor", table.c.key == pseudonym)
        )
        viewed = connection.execute(sa.delete(views).where(views.c.counsellor == pseudonym))
        goals = delete_goals(connection, tables.coaching_goals.c.counsellor == pseudonym)
        audit_subjects.forget_counsellor(connection, pseudonym)
    found = Counter({table.name: deleted.rowcount, views.name: viewed.rowcount})
    return +(found + goals)


def delete_goals(connection: Connection, *conditions: sa.ColumnElement[bool]) -> Counter[str]:
    """Delete coaching goals with their keys; return the number of rows by table."""
    goals, keys = tables.coaching_goals, tables.session_keys
    chosen = list(connection.scalars(sa.select(goals.c.goal_id).where(*conditions)))
    removed = {
        table.name: connection.execute(sa.delete(table).where(column.in_(chosen))).rowcount
        for table, column in ((keys, keys.c.session_id), (goals, goals.c.goal_id))
    }
    return Counter(removed)


def delete_sessions(connection: Connection, session_ids: Sequence[str]) -> Counter[str]:
    """Delete all rows of these sessions; return their number by table, without zeros."""
    removed: Counter[str] = Counter()
    alerts = sa.select(tables.alerts.c.alert_id).where(tables.alerts.c.session_id.in_(session_ids))
    mutes, keys = tables.mutes, tables.session_keys
    of_mutes = sa.select(mutes.c.mute_id).where(mutes.c.session_id.in_(session_ids))
    deleted = connection.execute(sa.delete(keys).where(keys.c.session_id.in_(of_mutes)))
    removed[keys.name] += deleted.rowcount
    with rollup_marks.erasing(connection, session_ids):
        for table in SESSION_TABLES:
            if table is tables.alerts:
                deliveries = tables.deliveries
                deleted = connection.execute(
                    sa.delete(deliveries).where(deliveries.c.alert_id.in_(alerts))
                )
                removed[deliveries.name] += deleted.rowcount
            of_sessions = table.c.session_id.in_(session_ids)
            deleted = connection.execute(sa.delete(table).where(of_sessions))
            removed[table.name] += deleted.rowcount
    removed[tables.outbox.name] += _delete_unpublished(
        connection, {key.encode() for key in session_ids}
    )
    return +removed


def batches(session_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split ids into as many at a time as one statement may have parameters."""
    for first in range(0, len(session_ids), SESSIONS_PER_BATCH):
        yield session_ids[first : first + SESSIONS_PER_BATCH]


def _delete_mute_reasons(connection: Connection, session_ids: Sequence[str]) -> int:
    """Delete the reasons of mutes of a rule or team that covered one of the sessions.

    They may quote the session. The mutes stay in force. Returns the number of deleted reasons.
    """
    mutes, sessions, turns, alerts = tables.mutes, tables.sessions, tables.turns, tables.alerts
    began = (
        sa.select(turns.c.session_id, sa.func.min(turns.c.stored_at).label("at"))
        .where(turns.c.session_id.in_(session_ids))
        .group_by(turns.c.session_id)
        .subquery()
    )
    query = (
        sa.select(sessions.c.session_id, sessions.c.team, began.c.at)
        .outerjoin(began, began.c.session_id == sessions.c.session_id)
        .where(sessions.c.session_id.in_(session_ids))
    )
    rules: dict[str, set[str]] = {}
    fired = sa.select(alerts.c.session_id, alerts.c.rule).distinct()
    for session_id, rule in connection.execute(fired.where(alerts.c.session_id.in_(session_ids))):
        rules.setdefault(session_id, set()).add(rule)
    cleared: set[str] = set()
    for row in connection.execute(query).all():
        covering = sa.select(mutes.c.mute_id).where(
            mutes.c.session_id.is_(None),
            mutes.c.reason.is_not(None),
            mutes.c.team.is_(None) | (mutes.c.team == row.team),
            mutes.c.rule.is_(None) | mutes.c.rule.in_(rules.get(row.session_id, ())),
        )
        if row.at is not None:  # earlier ones cannot refer to it
            covering = covering.where(mutes.c.at >= row.at - CLOCK_TOLERANCE)
        cleared.update(connection.scalars(covering))
    keys = tables.session_keys
    connection.execute(sa.update(mutes).where(mutes.c.mute_id.in_(cleared)).values(reason=None))
    connection.execute(sa.delete(keys).where(keys.c.session_id.in_(cleared)))
    return len(cleared)


def _notify_consumers(
    connection: Connection, session_ids: Sequence[str], topics: Sequence[str], now: datetime
) -> list[int]:
    """Store a record without a value per session and topic in the outbox; return the row's id."""
    if not topics:
        return []
    messages = [Message(topic, key.encode(), None) for key in session_ids for topic in topics]
    row = {"created_at": now, "messages": outbox_codec.pack(messages)}
    inserted = connection.execute(sa.insert(tables.outbox).values(row))
    key = inserted.inserted_primary_key
    return [int(key[0])] if key is not None else []


def _delete_unpublished(connection: Connection, keys: set[bytes]) -> int:
    """Remove unpublished messages with these keys from the outbox; return their number."""
    table, deleted = tables.outbox, 0
    query = sa.select(table.c.id, table.c.messages).order_by(table.c.id)
    for row in connection.execute(query).all():
        messages = outbox_codec.unpack(row.messages)
        kept = [message for message in messages if message.key not in keys or not message.value]
        if len(kept) == len(messages):
            continue
        deleted += len(messages) - len(kept)
        this_row = table.c.id == row.id
        if kept:
            packed = outbox_codec.pack(kept)
            connection.execute(sa.update(table).where(this_row).values(messages=packed))
        else:
            connection.execute(sa.delete(table).where(this_row))
    return deleted


def _count(connection: Connection, table: sa.Table, session_ids: Sequence[str]) -> int:
    query = sa.select(sa.func.count()).where(table.c.session_id.in_(session_ids))
    return int(connection.scalar(query.select_from(table)) or 0)
