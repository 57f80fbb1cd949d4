"""Encrypts values that release 0.1 stored in plain, in batches, while workers are running."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection

from stream_app.sealing.envelope import MARK, is_sealed, seal, seal_text
from stream_app.store.database.tables import (
    alert_actions,
    coaching_goals,
    disputes,
    interventions,
    mutes,
    rating_comments,
    review_comments,
    session_states,
    sessions,
    turns,
    window_turns,
)
from stream_app.store.keys.session_keys import place
from stream_app.store.stream.repository import Store

AT_A_TIME: Final = 500


class Sealed(Struct, frozen=True):
    """An encrypted column; ``identity``: columns of its place, first the owner of the key."""

    column: sa.Column[Any]
    identity: Sequence[sa.Column[Any]]
    seal: Callable[[bytes, Any, str], str | bytes]


_s, _w = session_states.c, window_turns.c
COLUMNS: Final = (
    Sealed(turns.c.text, (turns.c.session_id, turns.c.seq), seal_text),
    Sealed(sessions.c.end_reason, (sessions.c.session_id,), seal_text),
    Sealed(
        alert_actions.c.note, (alert_actions.c.session_id, alert_actions.c.action_id), seal_text
    ),
    Sealed(disputes.c.note, (disputes.c.session_id, disputes.c.dispute_id), seal_text),
    Sealed(disputes.c.answer, (disputes.c.session_id, disputes.c.dispute_id), seal_text),
    Sealed(
        rating_comments.c.comment,
        (rating_comments.c.session_id, rating_comments.c.comment_id),
        seal_text,
    ),
    Sealed(
        review_comments.c.comment,
        (review_comments.c.session_id, review_comments.c.comment_id),
        seal_text,
    ),
    Sealed(
        interventions.c.text,
        (interventions.c.session_id, interventions.c.intervention_id),
        seal_text,
    ),
    Sealed(coaching_goals.c.goal, (coaching_goals.c.goal_id,), seal_text),
    Sealed(mutes.c.reason, (mutes.c.mute_id,), seal_text),
    Sealed(_s.state, (_s.session_id, _s.bundle), seal),
    Sealed(_w.turn, (_w.session_id, _w.bundle, _w.slot), seal),
)


def encrypt_batches(store: Store, now: datetime) -> Iterator[Counter[str]]:
    """Encrypt in the order of primary keys; yield the number of values per batch, by column."""
    for item in COLUMNS:
        last: Sequence[Any] | None = ()
        while last is not None:
            with store.transaction() as connection:
                done, last = _encrypt(store, connection, item, last, now)
            if done:
                yield Counter({f"{item.column.table.name}.{item.column.name}": done})


def oldest_are_plain(store: Store) -> bool:
    """Whether any of the oldest stored texts (a bounded number) is not encrypted."""
    oldest = (
        sa.select(turns.c.text)
        .where(turns.c.text.is_not(None))
        .order_by(turns.c.stored_at)
        .limit(AT_A_TIME)
    )
    with store.reading() as connection:
        return not all(is_sealed(text) for text in connection.scalars(oldest) if text)


def _encrypt(
    store: Store, connection: Connection, item: Sealed, after: Sequence[Any], now: datetime
) -> tuple[int, Sequence[Any] | None]:
    """Encrypt plain values in the next rows; return their number and the last row's primary key."""
    keys_of_row = list(item.column.table.primary_key)
    query = sa.select(item.column, *item.identity, *keys_of_row).order_by(*keys_of_row)
    if after:
        query = query.where(sa.tuple_(*keys_of_row) > sa.tuple_(*map(_literal, keys_of_row, after)))
    found = [tuple(row) for row in connection.execute(query.limit(AT_A_TIME))]
    plain = [row for row in found if row[0] and not _is_sealed(row[0])]
    owners = sorted({row[1] for row in plain})
    keys = store.keys.load(connection, owners)
    new = []
    for owner in owners:
        if owner not in keys:
            keys[owner], made = store.keys.create(owner, now)
            new.append(made)
    store.keys.write(connection, new)
    for value, *rest in plain:
        identity = rest[: len(item.identity)]
        sealed = item.seal(keys[identity[0]], value, place(item.column, *identity))
        here = [column == part for column, part in zip(item.identity, identity, strict=True)]
        # a worker may have replaced the value in the meantime, with an encrypted one
        connection.execute(
            sa.update(item.column.table)
            .where(*here, item.column == value)
            .values({item.column.name: sealed})
        )
    last = found[-1][1 + len(item.identity) :] if len(found) == AT_A_TIME else None
    return len(plain), last


def _literal(column: sa.Column[Any], value: object) -> sa.BindParameter[Any]:
    return sa.literal(value, column.type)


def _is_sealed(value: str | bytes) -> bool:
    return value.startswith(MARK) if isinstance(value, bytes) else is_sealed(value)
