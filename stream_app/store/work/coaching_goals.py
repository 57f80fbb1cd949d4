"""Coaching goals: what a supervisor and a counsellor agreed on, private to the two.

The text is redacted and encrypted with a key of its own: it belongs to no session, but may quote
one.
"""

import uuid
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any

import sqlalchemy as sa

from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.database.tables import coaching_goals
from stream_app.store.keys.session_keys import place, seal_optional, unseal_or_none
from stream_app.store.sessions.scored_turns import NotFound, StateConflict
from stream_app.store.stream.repository import Store


class GoalState(Enum):
    """``open`` until the supervisor says how it ended."""

    OPEN = "open"
    REACHED = "reached"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal about a measure, from one day to another; ``person``: the supervisor.

    ``counsellor``: the pseudonym. ``target``: the mean of the measure to reach; None for goals
    without one.
    """

    goal_id: str
    counsellor: str
    person: str
    measure: str
    goal: str
    starts_on: date
    ends_on: date
    state: GoalState
    at: datetime
    target: float | None = None


def add(
    store: Store,
    person: Person,
    counsellor: str,
    measure: str,
    text: str,
    starts_on: date,
    ends_on: date,
    target: float | None = None,
) -> Goal:
    """Store a goal; check before that the person supervises the counsellor."""
    made = Goal(
        goal_id=str(uuid.uuid4()),
        counsellor=counsellor,
        person=person.name,
        measure=measure,
        goal=store.privacy.redacted(text),
        starts_on=starts_on,
        ends_on=ends_on,
        state=GoalState.OPEN,
        at=datetime.now(UTC),
        target=target,
    )
    row: dict[str, Any] = {name: getattr(made, name) for name in Goal.__slots__}
    row["state"] = made.state.value
    with store.transaction() as connection:
        key, new = store.keys.create(made.goal_id, made.at)
        store.keys.write(connection, [new])
        row["goal"] = seal_optional(key, made.goal, _place(made.goal_id))
        connection.execute(sa.insert(coaching_goals).values(row))
    return made


def find(store: Store, person: Person, counsellor: str | None = None) -> list[Goal]:
    """The goals that this person may see, newest first: their own, in either role."""
    of_counsellor = [] if counsellor is None else [coaching_goals.c.counsellor == counsellor]
    return _find(store, person, *of_counsellor)


def one(store: Store, person: Person, goal_id: str) -> Goal:
    """One goal.

    Raises:
        NotFound: it does not exist, or the person is neither its supervisor nor its counsellor.
    """
    found = _find(store, person, coaching_goals.c.goal_id == goal_id)
    if not found:
        raise NotFound("there is no such goal")
    return found[0]


def end(store: Store, person: Person, goal_id: str, state: GoalState) -> Goal:
    """End a goal as its supervisor.

    Raises:
        NotFound: it does not exist, or not for this supervisor.
        StateConflict: it has ended already.
    """
    found = one(store, person, goal_id)
    if found.person != person.name:
        raise NotFound("only the supervisor of a goal ends it")
    this = coaching_goals.c.goal_id == goal_id
    is_open = coaching_goals.c.state == GoalState.OPEN.value
    change = sa.update(coaching_goals).where(this, is_open).values(state=state.value)
    with store.transaction() as connection:
        changed = connection.execute(change).rowcount
    if not changed:
        raise StateConflict("this goal has already ended")
    return replace(found, state=state)


def _find(store: Store, person: Person, *conditions: sa.ColumnElement[bool]) -> list[Goal]:
    query = sa.select(coaching_goals).where(_of(person), *conditions)
    query = query.order_by(coaching_goals.c.at.desc(), coaching_goals.c.goal_id)
    with store.reading() as connection:
        found = connection.execute(query).mappings().all()
        keys = store.keys.load(connection, [row["goal_id"] for row in found])
    return [_goal(row, keys.get(row["goal_id"])) for row in found]


def _of(person: Person) -> sa.ColumnElement[bool]:
    """Nobody but the two: not a supervisor's other role, nor a colleague or administrator."""
    if person.role is PersonRole.COUNSELLOR and person.speaker:
        return coaching_goals.c.counsellor == person.speaker
    if person.role is PersonRole.SUPERVISOR:
        return coaching_goals.c.person == person.name
    return sa.false()


def _goal(row: sa.RowMapping, key: bytes | None) -> Goal:
    values = {name: row[name] for name in Goal.__slots__}
    text = unseal_or_none(key, row["goal"], _place(row["goal_id"]))
    return Goal(**{**values, "goal": text or "", "state": GoalState(row["state"])})


def _place(goal_id: str) -> str:
    return place(coaching_goals.c.goal, goal_id)
