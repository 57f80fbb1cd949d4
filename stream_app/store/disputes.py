"""A counsellor contests a score of an own turn; a supervisor of the team answers.

The model's score stays whatever the answer is.
"""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from stream_app.contracts.events import Role
from stream_app.store.judged import DoesNotFit, NotNow, NotThere, judged_turn
from stream_app.store.people import Person
from stream_app.store.reading.scope import Scope
from stream_app.store.repository import Store
from stream_app.store.tables import disputes

_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:rapport:dispute")


class Decision(Enum):
    """``upheld``: the counsellor is right. ``rejected``: the supervisor sees it like the model."""

    UPHELD = "upheld"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Dispute:
    """``value``: what the model said under ``bundle``; ``proposed``: what it should be, if said.

    Both are indices of the head's labels. ``decision`` is None while nobody has answered.
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


@dataclass(frozen=True, slots=True)
class DisputeCount:
    """How many scores of a head were contested, and what became of it."""

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
    """Contest what the model said of an own turn. The note is redacted as turns are.

    Raises:
        NotThere: no such turn may be seen.
        DoesNotFit: it is not an own turn, the model abstained, or the proposed value is the score's
            own or none of the head's.
        NotNow: this score was contested by this person before.
    """
    with store.transaction() as connection:
        turn = judged_turn(connection, person.scope, session_id, seq)
        if turn.role is not Role.COUNSELLOR or turn.speaker != person.speaker:
            raise DoesNotFit("only a score of an own turn can be disputed")
        turn.head(head, proposed)
        value = turn.said.get(head)
        if value is None:
            raise DoesNotFit("the model abstained here: there is no score to dispute")
        if value == proposed:
            raise DoesNotFit("this is what the model said, too")
        made = Dispute(
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
        row = {name: getattr(made, name) for name in Dispute.__slots__}
        try:
            connection.execute(sa.insert(disputes).values(row))
        except IntegrityError:
            raise NotNow("you have disputed this score already") from None
    return made


def decide(
    store: Store, person: Person, dispute_id: str, decision: Decision, answer: str
) -> Dispute:
    """Answer a dispute, once.

    Raises:
        NotThere: no such dispute may be seen.
        NotNow: it has been answered already.
    """
    found = one(store, person.scope, dispute_id)
    if found is None:
        raise NotThere("there is no such dispute")
    answered = (
        sa.update(disputes)
        .where(disputes.c.dispute_id == dispute_id, disputes.c.decision.is_(None))
        .values(
            decision=decision.value,
            decided_by=person.name,
            decided_at=datetime.now(UTC),
            answer=store.privacy.redacted(answer),
        )
    )
    with store.transaction() as connection:
        written = connection.execute(answered).rowcount
    if not written:
        raise NotNow("this dispute has been answered already")
    after = one(store, person.scope, dispute_id)
    if after is None:
        raise NotThere("the dispute was erased meanwhile")
    return after


def one(store: Store, scope: Scope, dispute_id: str) -> Dispute | None:
    """One dispute, if it may be seen."""
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
    """Disputes, the newest first; ``waiting``: only those without, or only those with an answer."""
    conditions = []
    if session_id is not None:
        conditions.append(disputes.c.session_id == session_id)
    if person is not None:
        conditions.append(disputes.c.person == person)
    if waiting is not None:
        unanswered = disputes.c.decision.is_(None)
        conditions.append(unanswered if waiting else ~unanswered)
    return _find(store, scope, *conditions, limit=limit)


def counts(store: Store, bundle: str) -> list[DisputeCount]:
    """By head, how often scores of a bundle were contested; names nobody."""
    table = disputes
    query = (
        sa.select(table.c.head, table.c.decision, sa.func.count())
        .where(table.c.bundle == bundle)
        .group_by(table.c.head, table.c.decision)
    )
    found: dict[str, dict[str | None, int]] = {}
    with store.reading() as connection:
        for head, decision, count in connection.execute(query):
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
    store: Store, scope: Scope, *conditions: sa.ColumnElement[bool], limit: int = 1
) -> list[Dispute]:
    query = (
        sa.select(disputes)
        .where(*conditions, *scope.conditions(disputes.c.session_id))
        .order_by(disputes.c.at.desc(), disputes.c.dispute_id)
        .limit(limit)
    )
    with store.reading() as connection:
        return [_dispute(row) for row in connection.execute(query).mappings()]


def _dispute(row: sa.RowMapping) -> Dispute:
    values: dict[str, Any] = {name: row[name] for name in Dispute.__slots__}
    values["decision"] = Decision(row["decision"]) if row["decision"] else None
    return Dispute(**values)


def _id(*parts: str | int) -> str:
    return str(uuid.uuid5(_NAMESPACE, repr(parts)))
