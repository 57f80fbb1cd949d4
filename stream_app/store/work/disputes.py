"""Disputes: counsellors contest scores of their own turns, supervisors of the team decide.

A decision never changes the model's score.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from stream_app.contracts.events import Role
from stream_app.store.accounts.people import Person
from stream_app.store.database.tables import disputes
from stream_app.store.keys.session_keys import place, seal_optional, unseal_or_none
from stream_app.store.sessions.scope import SCOPES, Scope
from stream_app.store.sessions.scored_turns import (
    InvalidJudgement,
    NotFound,
    StateConflict,
    find_scored_turn,
)
from stream_app.store.stream.repository import Store

_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:rapport:dispute")


class Decision(Enum):
    """``upheld``: the supervisor agrees with the counsellor; ``rejected``: with the model."""

    UPHELD = "upheld"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Dispute:
    """A contested score; ``value``: the model's; ``proposed``: the counsellor's, or None.

    Both are indices of the head's labels. ``decision`` is None until a supervisor has decided.
    """

    dispute_id: str
    session_id: str
    seq: int
    head: str
    bundle: str
    value: int
    proposed: int | None
    note: str
    person: str
    at: datetime
    decision: Decision | None
    decided_by: str | None
    decided_at: datetime | None
    answer: str | None


_COUNTS: Final = (
    sa.select(disputes.c.head, disputes.c.decision, sa.func.count())
    .where(disputes.c.bundle == sa.bindparam("bundle"))
    .group_by(disputes.c.head, disputes.c.decision)
)


@dataclass(frozen=True, slots=True)
class DisputeCount:
    """Numbers of disputes about a head, by decision."""

    head: str
    open: int
    upheld: int
    rejected: int


def contest(
    store: Store,
    person: Person,
    session_id: str,
    seq: int,
    head: str,
    proposed: int | None,
    note: str,
) -> Dispute:
    """Contest a score of one's own turn. The note is redacted like turn text.

    Raises:
        NotFound: the turn does not exist, or the person may not see it.
        InvalidJudgement: it is not the person's own turn, the model abstained, or the proposed
            value equals the score or is not one of the head's values.
        StateConflict: the person has already disputed this score.
    """
    with store.transaction() as connection:
        turn = find_scored_turn(connection, person.scope, session_id, seq)
        if turn.role is not Role.COUNSELLOR or turn.speaker != person.speaker:
            raise InvalidJudgement("you can only dispute scores of your own turns")
        turn.require_head(head, proposed)
        value = turn.model_values.get(head)
        if value is None:
            raise InvalidJudgement("the model abstained here: there is no score to dispute")
        if value == proposed:
            raise InvalidJudgement("the proposed value is the model's own")
        dispute = Dispute(
            dispute_id=_id(session_id, seq, head, turn.bundle, person.name),
            session_id=session_id,
            seq=seq,
            head=head,
            bundle=turn.bundle,
            value=value,
            proposed=proposed,
            note=store.privacy.redacted(note),
            person=person.name,
            at=datetime.now(UTC),
            decision=None,
            decided_by=None,
            decided_at=None,
            answer=None,
        )
        key = store.keys.get_or_create(connection, session_id, dispute.at)
        if key is None:
            raise NotFound("the session was erased in the meantime")
        row = {name: getattr(dispute, name) for name in Dispute.__slots__}
        row["note"] = seal_optional(key, dispute.note, _place(disputes.c.note, dispute))
        try:
            connection.execute(sa.insert(disputes).values(row))
        except IntegrityError:
            raise StateConflict("you have already disputed this score") from None
    return dispute


def decide(
    store: Store, person: Person, dispute_id: str, decision: Decision, answer: str
) -> Dispute:
    """Decide a dispute, once.

    Raises:
        NotFound: the dispute does not exist, or the person may not see it.
        StateConflict: it was already decided.
    """
    found = one(store, person.scope, dispute_id)
    if found is None:
        raise NotFound("there is no such dispute")
    now = datetime.now(UTC)
    with store.transaction() as connection:
        key = store.keys.get_or_create(connection, found.session_id, now)
        if key is None:
            raise NotFound("the dispute was erased in the meantime")
        where = _place(disputes.c.answer, found)
        answered = (
            sa.update(disputes)
            .where(disputes.c.dispute_id == dispute_id, disputes.c.decision.is_(None))
            .values(
                decision=decision.value,
                decided_by=person.name,
                decided_at=now,
                answer=seal_optional(key, store.privacy.redacted(answer), where),
            )
        )
        written = connection.execute(answered).rowcount
    if not written:
        raise StateConflict("this dispute has already been decided")
    after = one(store, person.scope, dispute_id)
    if after is None:
        raise NotFound("the dispute was erased in the meantime")
    return after


def one(store: Store, scope: Scope, dispute_id: str) -> Dispute | None:
    """One dispute; None if it does not exist in ``scope``."""
    found = _find(store, scope, disputes.c.dispute_id == dispute_id)
    return found[0] if found else None


def find(
    store: Store,
    scope: Scope,
    *,
    session_id: str | None = None,
    person: str | None = None,
    waiting: bool | None = None,
    limit: int = 500,
) -> list[Dispute]:
    """Disputes, newest first; ``waiting``: True for only undecided, False for only decided ones."""
    if session_id is not None and person is None and waiting is None:
        return _run(store, _of_one_session(scope, limit), {"session_id": session_id})
    conditions = []
    if session_id is not None:
        conditions.append(disputes.c.session_id == session_id)
    if person is not None:
        conditions.append(disputes.c.person == person)
    if waiting is not None:
        unanswered = disputes.c.decision.is_(None)
        conditions.append(unanswered if waiting else ~unanswered)
    return _find(store, scope, *conditions, limit=limit)


@lru_cache(maxsize=SCOPES)
def _of_one_session(scope: Scope, limit: int) -> sa.Select[Any]:
    return _select(scope, disputes.c.session_id == sa.bindparam("session_id")).limit(limit)


def count_waiting(store: Store, scope: Scope) -> int:
    """Number of disputes in ``scope`` without an answer."""
    with store.reading() as connection:
        return connection.scalar(select_waiting(scope)) or 0


def select_waiting(scope: Scope) -> sa.Select[int]:
    """The statement of ``count_waiting``."""
    waiting = sa.select(sa.func.count()).select_from(disputes)
    return waiting.where(disputes.c.decision.is_(None), *scope.conditions(disputes.c.session_id))


def of_sessions(
    store: Store, scope: Scope, session_ids: Sequence[str], person: str | None = None
) -> list[Dispute]:
    """All disputes about these sessions, ordered by session and time; ``person``: only theirs."""
    conditions: list[sa.ColumnElement[bool]] = [disputes.c.session_id.in_(session_ids)]
    if person is not None:
        conditions.append(disputes.c.person == person)
    found = _find(store, scope, *conditions, limit=None)
    return sorted(found, key=lambda each: (each.session_id, each.at, each.dispute_id))


def counts(store: Store, bundle: str) -> list[DisputeCount]:
    """Count by head how often scores of a bundle were contested; anonymous."""
    found: dict[str, dict[str | None, int]] = {}
    with store.reading() as connection:
        for head, decision, count in connection.execute(_COUNTS, {"bundle": bundle}):
            found.setdefault(head, {})[decision] = count
    return [
        DisputeCount(
            head,
            by.get(None, 0),
            by.get(Decision.UPHELD.value, 0),
            by.get(Decision.REJECTED.value, 0),
        )
        for head, by in sorted(found.items())
    ]


def _find(
    store: Store, scope: Scope, *conditions: sa.ColumnElement[bool], limit: int | None = 1
) -> list[Dispute]:
    return _run(store, _select(scope, *conditions).limit(limit), {})


def _select(scope: Scope, *conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return (
        sa.select(disputes)
        .where(*conditions, *scope.conditions(disputes.c.session_id))
        .order_by(disputes.c.at.desc(), disputes.c.dispute_id)
    )


def _run(store: Store, query: sa.Select[Any], given: dict[str, str]) -> list[Dispute]:
    with store.reading() as connection:
        found = connection.execute(query, given).mappings().all()
        keys = store.keys.load(connection, sorted({row["session_id"] for row in found}))
    return [_dispute(row, keys.get(row["session_id"])) for row in found]


def _dispute(row: sa.RowMapping, key: bytes | None) -> Dispute:
    values: dict[str, Any] = {name: row[name] for name in Dispute.__slots__}
    values["decision"] = Decision(row["decision"]) if row["decision"] else None
    stored = Dispute(**values)
    return replace(
        stored,
        note=unseal_or_none(key, stored.note, _place(disputes.c.note, stored)) or "",
        answer=unseal_or_none(key, stored.answer, _place(disputes.c.answer, stored)),
    )


def _place(column: sa.Column[str], dispute: Dispute) -> str:
    return place(column, dispute.session_id, dispute.dispute_id)


def _id(*parts: str | int) -> str:
    return str(uuid.uuid5(_NAMESPACE, repr(parts)))
