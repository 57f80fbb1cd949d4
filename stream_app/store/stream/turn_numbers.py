"""Numbers the turns that programs send without ``seq``, and keeps who began a session.

The first turn of a session that passes through a web process decides, in the database, whether the
web processes number its turns or the producer does. Mixing both would give one number to two turns,
so it is refused. The row of a session is locked while its numbers are taken: several web processes
never give out the same one.

A session belongs to the account and limits of the token that sent its first turn: others cannot
send turns of it. Sessions that began without a web process belong to nobody.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.contracts.numbering import MAX_SEQ
from stream_app.store.database.tables import erasures, session_numbers, sessions, turns
from stream_app.store.stream.repository import Store

BY_GATEWAY: Final = "numbered-by-gateway"
BY_PRODUCER: Final = "numbered-by-producer"
NO_NUMBER_LEFT: Final = "no-number-left"
ERASED: Final = "session-erased"
TAKEN: Final = "session-taken"
REFUSALS: Final = {
    BY_GATEWAY: "earlier turns of this session had no seq, so Rapport numbers them; leave seq out",
    BY_PRODUCER: "earlier turns of this session had a seq of the producer; send seq with this one",
    NO_NUMBER_LEFT: f"the session already has a turn with seq {MAX_SEQ}; begin another session",
    ERASED: "this session was erased; begin another session",
    TAKEN: "another account or token began this session; use another session id",
}
"""Why a turn is refused, by code."""


@dataclass(frozen=True, slots=True)
class SentTurn:
    """A turn as it was sent; ``seq`` None: to be numbered."""

    session_id: str
    seq: int | None


@dataclass(frozen=True, slots=True)
class Numbered:
    """The number of a turn, or the code of ``REFUSALS`` that explains why it has none."""

    seq: int | None
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class _Decided:
    """Whether web processes number a session's turns, and who began it."""

    gateway: bool
    owner: str | None

    def is_taken(self, sender: str) -> bool:
        return self.owner not in (None, sender)


def owner_of(account: str, limits: Sequence[tuple[str, str]]) -> str:
    """Who sends: an account with the limits of its token, so that a new token continues."""
    return hashlib.blake2b(f"{account}\0{limits}".encode(), digest_size=16).hexdigest()


def owners(store: Store, session_ids: Iterable[str]) -> dict[str, str]:
    """Who began each of these sessions, as far as it is known."""
    with store.reading() as connection:
        known = _known(connection, session_ids)
    return {name: found.owner for name, found in known.items() if found.owner is not None}


def numbered_by_producers(store: Store, sent: Sequence[SentTurn], sender: str) -> bool:
    """Whether all of these turns have a number, in the sender's sessions that producers number.

    Then ``assign`` would neither change a row nor refuse a turn.
    """
    if any(turn.seq is None for turn in sent):
        return False
    wanted = {turn.session_id for turn in sent}
    with store.reading() as connection:
        known = _known(connection, wanted)
    return known.keys() == wanted and not any(
        found.gateway or found.is_taken(sender) for found in known.values()
    )


def numbered_by_sender(
    store: Store, session_ids: Iterable[str], sender: str, *, unknown: bool
) -> set[str]:
    """Select sessions whose turns the sender numbers; ``unknown``: also those nobody has begun."""
    wanted = set(session_ids)
    with store.reading() as connection:
        known = _known(connection, wanted)
    theirs = {
        name for name, found in known.items() if not found.gateway and not found.is_taken(sender)
    }
    return theirs | (wanted - known.keys() if unknown else set())


def assign(
    store: Store, connection: Connection, sent: Sequence[SentTurn], now: datetime, sender: str
) -> list[Numbered]:
    """Number these turns, in this order, in the caller's transaction.

    A session that was begun without a web process, by a producer on the topic, belongs to its
    producer from its first stored turn on. Ids of erased sessions are not stored again; the worker
    drops their turns.
    """
    first: dict[str, SentTurn] = {}
    for turn in sent:
        first.setdefault(turn.session_id, turn)
    known = _known(connection, first)
    erased = _erased(store, connection, first.keys() - known.keys())
    decided = known.keys() | erased
    new = [turn for name, turn in sorted(first.items()) if name not in decided]
    if new:
        begun = _begun(connection, [turn.session_id for turn in new])
        rows = [
            {
                "session_id": turn.session_id,
                "next_seq": 0 if turn.seq is None and turn.session_id not in begun else None,
                "at": now,
                "owner": sender if turn.session_id not in begun else None,
            }
            for turn in new
        ]
        store.upsert(connection, session_numbers, rows, keep=True)
        known |= _known(connection, [turn.session_id for turn in new])
    taken = {name for name, found in known.items() if found.is_taken(sender)}
    counted = (name for name, found in known.items() if found.gateway and name not in taken)
    following = _lock(connection, sorted(counted))
    before = dict(following)
    numbered = [
        Numbered(None, TAKEN) if turn.session_id in taken else _number(turn, following, erased)
        for turn in sent
    ]
    for session_id, seq in following.items():
        if seq != before[session_id]:
            _advance(connection, session_id, seq, now)
    return numbered


def give_back(store: Store, numbered: Sequence[tuple[str, int]]) -> None:
    """Return the numbers of turns that certainly did not reach the log, by session.

    Numbers after which others were taken stay unused: the worker waits for them for a while.
    """
    table = session_numbers
    with store.transaction() as connection:
        for session_id, seq in reversed(numbered):
            unchanged = (table.c.session_id == session_id) & (table.c.next_seq == seq + 1)
            connection.execute(sa.update(table).where(unchanged).values(next_seq=seq))


def _number(turn: SentTurn, following: dict[str, int], erased: set[str]) -> Numbered:
    """Take a number from ``following``, which has the sessions that web processes number."""
    if turn.session_id in erased and turn.seq is None:
        return Numbered(None, ERASED)
    seq = following.get(turn.session_id)
    if seq is None:
        return Numbered(turn.seq, BY_PRODUCER if turn.seq is None else None)
    if turn.seq is not None:
        return Numbered(None, BY_GATEWAY)
    if seq > MAX_SEQ:
        return Numbered(None, NO_NUMBER_LEFT)
    following[turn.session_id] = seq + 1
    return Numbered(seq)


def _known(connection: Connection, session_ids: Iterable[str]) -> dict[str, _Decided]:
    """The sessions with a decision."""
    table = session_numbers
    query = sa.select(
        table.c.session_id, table.c.next_seq.is_not(None).label("gateway"), table.c.owner
    )
    found = connection.execute(query.where(table.c.session_id.in_(list(session_ids))))
    return {row.session_id: _Decided(bool(row.gateway), row.owner) for row in found}


def _erased(store: Store, connection: Connection, session_ids: Iterable[str]) -> set[str]:
    """Select erased sessions."""
    digests = {store.privacy.pseudonym(session_id): session_id for session_id in session_ids}
    query = sa.select(erasures.c.digest).where(erasures.c.digest.in_(list(digests)))
    return {digests[digest] for digest in connection.scalars(query)}


def _begun(connection: Connection, session_ids: Sequence[str]) -> set[str]:
    """Select sessions that have a turn already."""
    query = sa.select(sessions.c.session_id).where(
        sessions.c.session_id.in_(session_ids), sessions.c.started_at.is_not(None)
    )
    return set(connection.scalars(query))


def _lock(connection: Connection, session_ids: Sequence[str]) -> dict[str, int]:
    """Lock these sessions in a fixed order, to avoid deadlocks, and read their next numbers.

    A stored turn with a higher number (the database was restored from a backup) counts, too.
    """
    if not session_ids:
        return {}
    table = session_numbers
    query = sa.select(table).where(table.c.session_id.in_(session_ids)).order_by(table.c.session_id)
    following = {
        row.session_id: row.next_seq for row in connection.execute(query.with_for_update())
    }
    highest = (
        sa.select(turns.c.session_id, sa.func.max(turns.c.seq).label("seq"))
        .where(turns.c.session_id.in_(session_ids))
        .group_by(turns.c.session_id)
    )
    for row in connection.execute(highest):
        if row.session_id in following:  # else it was erased in the meantime
            following[row.session_id] = max(following[row.session_id], row.seq + 1)
    return following


def _advance(connection: Connection, session_id: str, seq: int, now: datetime) -> None:
    table = session_numbers
    update = sa.update(table).where(table.c.session_id == session_id)
    connection.execute(update.values(next_seq=seq, at=now))
