"""Stored session states: load, find idle and due ones, replace by version."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from operator import itemgetter
from typing import Any

import sqlalchemy as sa
from msgspec import DecodeError
from sqlalchemy import Connection

from stream_app.contracts.scores import SessionStatus
from stream_app.core.session.session_state import Versioned
from stream_app.errors import RowRefused, SealingError, StaleState
from stream_app.sealing.envelope import MARK, unseal
from stream_app.store.database import tables
from stream_app.store.database.connection import Database
from stream_app.store.database.periods import seen_period
from stream_app.store.database.rows import Row
from stream_app.store.database.statements import Statement, compiled, insert_new
from stream_app.store.keys.session_keys import SessionKeys, place
from stream_app.store.stream import windows


class SessionStates:
    """The table of session states; see ``core.ports.SessionStore``."""

    def __init__(self, database: Database, keys: SessionKeys) -> None:
        self._database = database
        self._keys = keys
        dialect = database.engine.dialect.name
        self._new_states = insert_new(tables.session_states, dialect)
        self._known_states = _update_if_unchanged(dialect)

    def open_by_other_bundles(self, bundle: str) -> dict[str, int]:
        """Number of sessions that have not ended and have no state of this bundle, by bundle."""
        states, same = tables.session_states, tables.session_states.alias()
        taken_over = sa.exists().where(
            same.c.session_id == states.c.session_id, same.c.bundle == bundle
        )
        query = (
            sa.select(states.c.bundle, sa.func.count())
            .where(
                states.c.bundle != bundle,
                states.c.status != SessionStatus.CLOSED.value,
                ~taken_over,
            )
            .group_by(states.c.bundle)
            .order_by(states.c.bundle)
        )
        with self._database.reading() as connection:
            return dict(connection.execute(query).all())

    def open_without_their_bundle(self, default: str, in_force: Sequence[str]) -> dict[str, int]:
        """Number of sessions that have not ended, by the bundle of their latest scores.

        Of sessions with a state under the default bundle, those whose latest scores are of a bundle
        that is not in force.
        """
        scores, later = tables.session_scores, tables.session_scores.alias()
        same = sa.exists().where(
            tables.session_states.c.session_id == scores.c.session_id,
            tables.session_states.c.bundle == default,
            tables.session_states.c.status != SessionStatus.CLOSED.value,
        )
        moved = sa.exists().where(
            later.c.session_id == scores.c.session_id, later.c.bundle.in_(in_force)
        )
        query = (
            sa.select(scores.c.bundle, sa.func.count())
            .where(scores.c.bundle.not_in(in_force), same, ~moved)
            .group_by(scores.c.bundle)
            .order_by(scores.c.bundle)
        )
        with self._database.reading() as connection:
            return dict(connection.execute(query).all())

    def load(self, session_ids: Sequence[str], bundle: str) -> dict[str, Versioned]:
        """The stored states of these sessions, in this order; unknown ones are left out."""
        if not session_ids:
            return {}
        states, turns = tables.session_states, tables.window_turns
        columns = states.c.session_id, sa.null(), states.c.version, states.c.partition
        nothing = sa.null(), sa.null(), sa.null()
        both = sa.union_all(  # one statement, so that both see the same snapshot
            sa.select(*columns, states.c.seen_at, states.c.state).where(
                states.c.bundle == bundle, states.c.session_id.in_(session_ids)
            ),
            sa.select(turns.c.session_id, turns.c.slot, *nothing, turns.c.turn).where(
                turns.c.bundle == bundle, turns.c.session_id.in_(session_ids)
            ),
        )
        found: dict[str, tuple[bytes, int, int, datetime | None]] = {}
        turns_of: defaultdict[str, dict[int, bytes]] = defaultdict(dict)
        with self._database.reading() as connection:
            for session_id, slot, version, partition, seen_at, raw in connection.execute(both):
                if slot is None:
                    found[session_id] = raw, version, partition, seen_at
                else:
                    turns_of[session_id][slot] = raw
            keys = self._keys.load(connection, list(found))
        known: dict[str, Versioned] = {}
        for session_id in filter(found.__contains__, session_ids):
            raw, version, partition, seen_at = found[session_id]
            key = keys.get(session_id)
            if key is None and raw.startswith(MARK):
                continue  # it was erased between the two queries
            try:
                unsealed = {
                    slot: unseal(key, turn, place(turns.c.turn, session_id, bundle, slot))
                    for slot, turn in turns_of[session_id].items()
                }
                raw = unseal(key, raw, place(states.c.state, session_id, bundle))
                state, slots = windows.join_state(raw, unsealed)
            except (SealingError, DecodeError) as problem:  # of one session: the others go on
                raise RowRefused(f"the state of a session is damaged: {problem}") from None
            known[session_id] = Versioned(
                state, version, partition, slots, seen_at=seen_at, key=key or b""
            )
        return known

    def idle(
        self, bundle: str, before: datetime, partitions: Sequence[int] | None, limit: int = 200
    ) -> dict[str, Versioned]:
        """Open sessions without an event since ``before``, least recent first."""
        table = tables.session_states
        query = (
            sa.select(table.c.session_id)
            .where(
                table.c.bundle == bundle,
                table.c.status == SessionStatus.OPEN.value,
                table.c.seen_period <= seen_period(before),
                table.c.seen_at < before,
            )
            .order_by(table.c.seen_period, table.c.seen_at)
            .limit(limit)
        )
        if partitions is not None:
            query = query.where(table.c.partition.in_(partitions))
        return self._found(query, bundle)

    def due(
        self,
        bundle: str,
        due: datetime,
        active_since: datetime,
        partitions: Sequence[int],
        limit: int = 200,
    ) -> dict[str, Versioned]:
        """Open sessions with a timed rule due by ``due`` (service's clock), earliest first.

        Only live sessions: with an event, and a turn time, since ``active_since``. Older turn
        times mean that a recording is being replayed.
        """
        table = tables.session_states
        query = (
            sa.select(table.c.session_id)
            .where(
                table.c.bundle == bundle,
                table.c.wake_at <= due,
                table.c.status == SessionStatus.OPEN.value,
                table.c.seen_at >= active_since,
                table.c.last_activity_at >= active_since,
                table.c.partition.in_(partitions),
            )
            .order_by(table.c.wake_at)
            .limit(limit)
        )
        return self._found(query, bundle)

    def write(self, connection: Connection, values: list[Row]) -> None:
        """Compare and swap on ``version``, so that a zombie worker cannot overwrite new states.

        Rows are written in the order of the ids, in which ``session_locks`` locks them, too.
        """
        values = sorted(values, key=itemgetter("session_id"))
        new = [row for row in values if row["was"] == 0]
        known = [row for row in values if row["was"]]
        written = self._new_states.run(connection, new) if new else 0
        written += self._known_states.run(connection, known) if known else 0
        if written != len(values):
            raise StaleState(
                f"{len(values) - written} of {len(values)} sessions were updated by another worker"
            )

    def _found(self, query: sa.Select[Any], bundle: str) -> dict[str, Versioned]:
        with self._database.reading() as connection:
            session_ids = list(connection.scalars(query))
        return self.load(session_ids, bundle)


@cache
def _update_if_unchanged(dialect: str) -> Statement:
    """Update a state whose version is ``b_was``."""
    table = tables.session_states
    keys = {"session_id", "bundle"}
    update = (
        sa.update(table)
        .where(
            *(table.c[key] == sa.bindparam(f"b_{key}") for key in sorted(keys)),
            table.c.version == sa.bindparam("b_was"),
        )
        .values({c.name: sa.bindparam(f"b_{c.name}") for c in table.c if c.name not in keys})
    )
    return compiled(update, table, dialect, prefix="b_")
