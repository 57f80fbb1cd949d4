"""Pairs of judgements about the same turn: people and the model, and people among themselves."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stream_app.store.judged import Head, heads
from stream_app.store.people import PersonRole
from stream_app.store.repository import Store
from stream_app.store.tables import people, ratings, turn_scores


@dataclass(frozen=True, slots=True)
class RatedTurn:
    """What was said of one turn under one head.

    ``people``: one value a person, those given blind first, then by time; ``blind``: how many of
    them. ``model``: None where it abstained.
    """

    model: int | None
    people: tuple[int, ...]
    blind: int


def stamp(store: Store) -> tuple[int, datetime | None]:
    """How many ratings there are and when the last one was given: other when one is."""
    query = sa.select(sa.func.count(), sa.func.max(ratings.c.at))
    with store.reading() as connection:
        count, last = connection.execute(query).one()
    return count, last


def rated_turns(store: Store, bundle: str, names: Sequence[str]) -> dict[Head, list[RatedTurn]]:
    """Turns with a score of this bundle that supervisors have rated, by head, in a fixed order.

    Counsellors rate their own turns; those ratings say nothing about agreement and are left out.
    """
    score, given = turn_scores, ratings
    query = (
        sa.select(
            given.c.session_id,
            given.c.seq,
            given.c.head,
            given.c.value,
            given.c.sample_id,
            given.c.person,
            score.c.expressed,
            score.c.perceived,
            score.c.client,
            score.c.abstained,
        )
        .join(people, people.c.name == given.c.person)
        .join(score, (score.c.session_id == given.c.session_id) & (score.c.seq == given.c.seq))
        .where(
            given.c.head.in_(names),
            score.c.bundle == bundle,
            people.c.role == PersonRole.SUPERVISOR.value,
        )
        .order_by(
            given.c.session_id,
            given.c.seq,
            given.c.head,
            given.c.sample_id.is_(None),  # blind ones first
            given.c.at,
            given.c.rating_id,
            score.c.stage,  # final before provisional
        )
    )
    found: dict[str, dict[tuple[str, int], list[Any]]] = defaultdict(lambda: defaultdict(list))
    with store.reading() as connection:
        known = heads(connection, bundle)
        for row in connection.execute(query).mappings():
            found[row["head"]][row["session_id"], row["seq"]].append(row)
    return {
        known[name]: [_turn(known[name], rows) for rows in found[name].values()]
        for name in names
        if name in known
    }


def _turn(head: Head, rows: Sequence[Any]) -> RatedTurn:
    by_person: dict[str, Any] = {}
    for row in rows:
        by_person.setdefault(row["person"], row)
    fitting = [row for row in by_person.values() if row["value"] < len(head.labels)]
    return RatedTurn(
        head.said(rows[0]),
        tuple(row["value"] for row in fitting),
        sum(row["sample_id"] is not None for row in fitting),
    )
