"""Pairs of judgements about the same turn: people and the model, and people among themselves."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stream_app.contracts.scores import MECHANISMS
from stream_app.store.judged import Head, heads
from stream_app.store.people import PersonRole
from stream_app.store.repository import Store
from stream_app.store.tables import people, ratings, turn_scores

Place = tuple[str, int]
"""Session and seq."""


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
    given = ratings
    rated = (
        sa.select(given)
        .join(people, people.c.name == given.c.person)
        .where(
            given.c.head.in_(names),
            given.c.seq.is_not(None),
            people.c.role == PersonRole.SUPERVISOR.value,
        )
        .order_by(
            given.c.session_id,
            given.c.seq,
            given.c.sample_id.is_(None),  # blind ones first
            given.c.at,
            given.c.rating_id,
        )
    )
    found: dict[str, dict[Place, list[Any]]] = defaultdict(lambda: defaultdict(list))
    with store.reading() as connection:
        known = heads(connection, bundle)
        scores = _scores(connection, bundle, rated, whole=not set(names) <= set(MECHANISMS))
        for row in connection.execute(rated).mappings():
            place = row["session_id"], row["seq"]
            if place in scores:
                found[row["head"]][place].append(row)
    return {
        known[name]: [
            _turn(known[name], scores[place], rows) for place, rows in found[name].items()
        ]
        for name in names
        if name in known
    }


def _scores(
    connection: sa.Connection, bundle: str, rated: sa.Select[Any], *, whole: bool
) -> dict[Place, Mapping[str, Any]]:
    """The best score of each rated turn; ``whole``: with all heads, not only the mechanisms."""
    score = turn_scores
    places = rated.order_by(None).subquery()
    wanted = sa.select(places.c.session_id, places.c.seq).distinct().subquery()
    parts = [score.c.expressed, score.c.perceived, score.c.client]
    levels = [score.c[name] for name in MECHANISMS]
    query = (
        sa.select(score.c.session_id, score.c.seq, score.c.abstained)
        .add_columns(*(parts if whole else levels))
        .join(wanted, (wanted.c.session_id == score.c.session_id) & (wanted.c.seq == score.c.seq))
        .where(score.c.bundle == bundle)
        .order_by(score.c.stage.desc())  # a final one replaces the provisional one
    )
    found: dict[Place, Mapping[str, Any]] = {}
    for row in connection.execute(query).mappings():
        found[row["session_id"], row["seq"]] = dict(row) if whole else _of_levels(row)
    return found


def _of_levels(row: sa.RowMapping) -> dict[str, Any]:
    said = {name: {"level": row[name]} for name in MECHANISMS if row[name] is not None}
    return {"expressed": said, "perceived": {}, "client": {}, "abstained": row["abstained"]}


def _turn(head: Head, score: Mapping[str, Any], rows: Sequence[Any]) -> RatedTurn:
    by_person: dict[str, Any] = {}
    for row in rows:
        by_person.setdefault(row["person"], row)
    fitting = [row for row in by_person.values() if row["value"] < len(head.labels)]
    return RatedTurn(
        head.said(score),
        tuple(row["value"] for row in fitting),
        sum(row["sample_id"] is not None for row in fitting),
    )
