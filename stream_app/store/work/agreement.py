"""Ratings of the same turn by people and the model, as input of agreement statistics."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from stream_app.contracts.scores import MECHANISMS
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.database.tables import (
    people,
    ratings,
    shadow_bundles,
    shadow_scores,
    turn_scores,
)
from stream_app.store.sessions.scored_turns import ScoredHead, find_heads
from stream_app.store.stream.repository import Store

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


@dataclass(frozen=True, slots=True)
class ComparedTurn:
    """Values of one turn for one head: the first rating, the bundle in force, the shadow.

    ``blind``: whether the rating was given without the score in view.
    """

    person: int
    in_force: int
    shadow: int
    blind: bool


_RATINGS_VERSION: Final = sa.select(sa.func.count().label("number"), sa.func.max(ratings.c.at))


def ratings_version(store: Store) -> tuple[int, datetime | None]:
    """Number of ratings and time of the last one; changes with every new rating."""
    with store.reading() as connection:
        count, last = connection.execute(_RATINGS_VERSION).one()
    return count, last


def rated_turns(
    store: Store, bundle: str, names: Sequence[str]
) -> dict[ScoredHead, list[RatedTurn]]:
    """Turns with a score by the bundle that supervisors have rated, by head, in a fixed order.

    Counsellors' ratings are left out, as they rate their own turns.
    """
    found: dict[str, dict[TurnKey, list[Any]]] = defaultdict(lambda: defaultdict(list))
    rated = _rated(names)
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


def shadows(store: Store) -> list[tuple[str, str]]:
    """Pairs of a bundle in force and a bundle in its shadow that scored the same rated turn."""
    tried, score = shadow_scores, turn_scores
    query = (
        sa.select(score.c.bundle, tried.c.bundle)
        .distinct()
        .select_from(ratings)
        .join(tried, (tried.c.session_id == ratings.c.session_id) & (tried.c.seq == ratings.c.seq))
        .join(score, (score.c.session_id == tried.c.session_id) & (score.c.seq == tried.c.seq))
        .where(score.c.bundle != tried.c.bundle)
        .order_by(score.c.bundle, tried.c.bundle)
    )
    with store.reading() as connection:
        return [(in_force, shadow) for in_force, shadow in connection.execute(query)]


def compared_turns(
    store: Store, bundle: str, shadow: str, names: Sequence[str]
) -> dict[ScoredHead, list[ComparedTurn]]:
    """Rated turns on which neither of two bundles abstained, by head, in a fixed order."""
    rated = _rated(names)
    found: dict[str, dict[TurnKey, ComparedTurn]] = defaultdict(dict)
    with store.reading() as connection:
        known = find_heads(connection, bundle)
        tried = find_heads(connection, shadow, shadow_bundles)
        both = [
            _scores(connection, bundle, rated, whole=True),
            _scores(connection, shadow, rated, whole=True, score=shadow_scores),
        ]
        for row in connection.execute(rated).mappings():
            place, name = (row["session_id"], row["seq"]), row["head"]
            head, other = known.get(name), tried.get(name)
            if head is None or other is None or head.labels != other.labels:
                continue
            values = [scores.get(place) for scores in both]
            if place in found[name] or None in values or row["value"] >= len(head.labels):
                continue
            in_force, in_shadow = (head.model_value(score) for score in values if score)
            if in_force is not None and in_shadow is not None:
                blind = row["sample_id"] is not None
                found[name][place] = ComparedTurn(row["value"], in_force, in_shadow, blind)
    return {known[name]: list(found[name].values()) for name in names if found.get(name)}


def _rated(names: Sequence[str]) -> sa.Select[Any]:
    """Supervisors' ratings of turns; blind ones first, then by time."""
    given = ratings
    return (
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


def _scores(
    connection: sa.Connection,
    bundle: str,
    rated: sa.Select[Any],
    *,
    whole: bool,
    score: sa.Table = turn_scores,
) -> dict[TurnKey, Mapping[str, Any]]:
    """The best score of each rated turn; ``whole``: with all heads, not just the mechanisms."""
    places = rated.order_by(None).subquery()
    wanted = sa.select(places.c.session_id, places.c.seq).distinct().subquery()
    parts = [score.c.expressed, score.c.perceived, score.c.client]
    levels = () if whole else [score.c[name] for name in MECHANISMS]
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
