"""Ratings of the same turn by people and the model, as input of agreement statistics."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stream_app.contracts.scores import MECHANISMS
from stream_app.store.people import PersonRole
from stream_app.store.repository import Store
from stream_app.store.scored_turns import ScoredHead, find_heads
from stream_app.store.tables import people, ratings, turn_scores

TurnKey = tuple[str, int]
"""Session id and seq."""


@dataclass(frozen=True, slots=True)
class RatedTurn:
    """Values of one turn for one head.

    ``people``: one value per person, blind ones first, then by time; ``raters``: their account
    names; ``blind``: the number of blind ones. ``model``: None if it abstained.
    """

    place: TurnKey
    model: int | None
    people: tuple[int, ...]
    raters: tuple[str, ...]
    blind: int


def ratings_version(store: Store) -> tuple[int, datetime | None]:
    """Number of ratings and time of the last one; changes with every new rating."""
    query = sa.select(sa.func.count(), sa.func.max(ratings.c.at))
    with store.reading() as connection:
        count, last = connection.execute(query).one()
    return count, last


def rated_turns(
    store: Store, bundle: str, names: Sequence[str]
) -> dict[ScoredHead, list[RatedTurn]]:
    """By head, turns with a score by the bundle that supervisors have rated, in a fixed order.

    Counsellors' ratings are left out, as they rate their own turns.
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
    found: dict[str, dict[TurnKey, list[Any]]] = defaultdict(lambda: defaultdict(list))
    with store.reading() as connection:
        known = find_heads(connection, bundle)
        scores = _scores(connection, bundle, rated, whole=not set(names) <= set(MECHANISMS))
        for row in connection.execute(rated).mappings():
            place = row["session_id"], row["seq"]
            if place in scores:
                found[row["head"]][place].append(row)
    return {
        known[name]: [
            _turn(known[name], place, scores[place], rows) for place, rows in found[name].items()
        ]
        for name in names
        if name in known
    }


def _scores(
    connection: sa.Connection, bundle: str, rated: sa.Select[Any], *, whole: bool
) -> dict[TurnKey, Mapping[str, Any]]:
    """The best score of each rated turn; ``whole``: with all heads, not just the mechanisms."""
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
        .order_by(score.c.stage.desc())  # final scores overwrite provisional ones
    )
    found: dict[TurnKey, Mapping[str, Any]] = {}
    for row in connection.execute(query).mappings():
        found[row["session_id"], row["seq"]] = dict(row) if whole else _mechanisms_only(row)
    return found


def _mechanisms_only(row: sa.RowMapping) -> dict[str, Any]:
    expressed = {name: {"level": row[name]} for name in MECHANISMS if row[name] is not None}
    return {"expressed": expressed, "perceived": {}, "client": {}, "abstained": row["abstained"]}


def _turn(
    head: ScoredHead, place: TurnKey, score: Mapping[str, Any], rows: Sequence[Any]
) -> RatedTurn:
    by_person: dict[str, Any] = {}
    for row in rows:
        by_person.setdefault(row["person"], row)
    valid = [row for row in by_person.values() if row["value"] < len(head.labels)]
    return RatedTurn(
        place,
        head.model_value(score),
        tuple(row["value"] for row in valid),
        tuple(row["person"] for row in valid),
        sum(row["sample_id"] is not None for row in valid),
    )
