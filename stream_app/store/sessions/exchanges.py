"""Exchanges around single turns: the client's words and the counsellor's answer to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Final

import sqlalchemy as sa

from stream_app.contracts.events import SCORED_ROLES, Role
from stream_app.store.database.tables import turns
from stream_app.store.keys.session_keys import place, unseal_or_none
from stream_app.store.sessions.scope import Scope
from stream_app.store.stream.repository import Store

AROUND: Final = 8
"""Turns read on either side of the one asked for."""


@dataclass(frozen=True, slots=True)
class Said:
    """A turn; ``text`` is redacted, and None after it expired or was erased."""

    seq: int
    role: Role
    text: str | None
    occurred_at: datetime


@dataclass(frozen=True, slots=True)
class ExchangeRead:
    """A client turn, if there was one, and the counsellor turns up to the next client turn."""

    asked: Said | None
    answers: list[Said]

    @property
    def seq(self) -> int:
        """The turn to open for it."""
        return self.asked.seq if self.asked is not None else self.answers[0].seq


_SCORED: Final = turns.c.role.in_([role.value for role in SCORED_ROLES])
"""Turns of clients and counsellors, without asides."""


def around(
    store: Store, scope: Scope, wanted: Mapping[str, Sequence[int]]
) -> dict[str, dict[int, ExchangeRead]]:
    """The exchange of each of these turns, by session and turn; late turns are in none."""
    places = [(session_id, seq) for session_id, seqs in wanted.items() for seq in seqs]
    if not places:
        return {}
    near = (
        (turns.c.session_id == session_id) & turns.c.seq.between(seq - AROUND, seq + AROUND)
        for session_id, seq in places
    )
    query = (
        sa.select(turns.c.session_id, turns.c.seq, turns.c.role, turns.c.text, turns.c.occurred_at)
        .where(sa.or_(*near), ~turns.c.late, _SCORED, *scope.conditions(turns.c.session_id))
        .order_by(turns.c.session_id, turns.c.seq)
    )
    with store.reading() as connection:
        rows = connection.execute(query).all()
        keys = store.keys.load(connection, sorted({row.session_id for row in rows}))
    said: dict[str, list[Said]] = {}
    for row in rows:
        where = place(turns.c.text, row.session_id, row.seq)
        text = unseal_or_none(keys.get(row.session_id), row.text, where)
        said.setdefault(row.session_id, []).append(
            Said(row.seq, Role(row.role), text, row.occurred_at)
        )
    return {
        session_id: {
            seq: found
            for seq in wanted[session_id]
            if (found := _exchange(said[session_id], seq)) is not None
        }
        for session_id in said
    }


def _exchange(said: Sequence[Said], seq: int) -> ExchangeRead | None:
    """The exchange of a turn; None if the turn is not stored.

    >>> from datetime import UTC, datetime
    >>> roles = [Role.CLIENT, Role.CLIENT, Role.COUNSELLOR, Role.COUNSELLOR, Role.CLIENT]
    >>> said = [Said(n, role, "", datetime.now(UTC)) for n, role in enumerate(roles)]
    >>> [(found.seq, [each.seq for each in found.answers])
    ...  for n in range(5) if (found := _exchange(said, n))]
    [(0, [2, 3]), (1, [2, 3]), (1, [2, 3]), (1, [2, 3]), (4, [])]
    """
    at = next((n for n, each in enumerate(said) if each.seq == seq), None)
    if at is None:
        return None
    asked_at = next((n for n in range(at, -1, -1) if said[n].role is Role.CLIENT), None)
    after = said[at if asked_at is None else asked_at + 1 :]
    answered = iter(after)
    if asked_at == at:  # the client may go on before the answer
        later = [each.role is Role.CLIENT for each in after]
        answered = iter(after[later.index(False) :] if False in later else [])
    answers = list(takewhile(lambda each: each.role is Role.COUNSELLOR, answered))
    return ExchangeRead(said[asked_at] if asked_at is not None else None, answers)
