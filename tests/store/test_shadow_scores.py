"""Scores of a bundle in the shadow: where they are read, and when they are deleted."""

from datetime import UTC, datetime

from stream_app.contracts.scores import MECHANISMS, Expressed, Level, Stage
from stream_app.core.session.batch import ShadowScore
from stream_app.core.session.restrictions import parse_restrictions
from stream_app.findings import agreement
from stream_app.store.database import tables
from stream_app.store.lifecycle import erasure, restricted
from stream_app.store.sessions import bundles
from stream_app.store.stream import shadow_scores
from stream_app.store.stream.repository import Store
from stream_app.store.work import agreement as queries
from stream_app.store.work import ratings
from stream_app.store.work.ratings import Judgement
from tests.store.batches import BUNDLE
from tests.store.judging import fill, supervisor
from tests.store.reading import rows

ER = MECHANISMS[0]
TRIED = "tried-1-fp32"


def shadow_of(store: Store, level: int) -> list[ShadowScore]:
    """A shadow that gives every counsellor turn this level."""
    return [
        ShadowScore(
            row["session_id"],
            row["seq"],
            Stage(row["stage"]),
            TRIED,
            Expressed({ER: Level(level, [0.2, 0.2, 0.6])}),
            {},
            {},
            [],
        )
        for row in rows(store, tables.turn_scores)
        if row["role"] == "counsellor"
    ]


def filled(store: Store) -> None:
    fill(store, 5)
    shadow_scores.register(store, TRIED, "0" * 64, {"name": "tried", "heads": []})


def test_both_agreements_are_over_the_same_turns(store: Store) -> None:
    filled(store)
    sue = supervisor(store)
    levels = {
        (row["session_id"], row["seq"]): row[ER]
        for row in rows(store, tables.turn_scores)
        if (row["role"], row["stage"]) == ("counsellor", "final")
        and row["session_id"].startswith("north")
    }
    given = [Judgement(session, seq, ER, level) for (session, seq), level in levels.items()]
    assert agreement.beside(store) == []
    shadow_scores.write(store, shadow_of(store, 2))
    assert agreement.beside(store) == []
    ratings.rate(store, sue.scope, sue.name, given)
    [found] = agreement.beside(store)
    assert (found.bundle, found.shadow, found.head) == (BUNDLE, TRIED, ER)
    assert (found.in_force.n, found.in_shadow.n) == (len(given), len(given))
    assert found.in_force.kappa == 1.0
    assert found.in_shadow.problem is not None
    assert "used only one level" in found.in_shadow.problem


def test_the_shadow_is_no_registered_bundle(store: Store) -> None:
    filled(store)
    shadow_scores.write(store, shadow_of(store, 1))
    assert [row.bundle for row in bundles.find(store)] == [BUNDLE]
    assert queries.shadows(store) == []


def test_nothing_is_written_for_erased_withdrawn_or_hidden_sessions(store: Store) -> None:
    filled(store)
    scores = shadow_of(store, 1)
    erasure.erase(store, ["north-0"], datetime.now(UTC))
    table = tables.sessions
    with store.transaction() as connection:
        for name, column in (("north-1", "withdrawn"), ("north-2", "hidden")):
            row = table.update().where(table.c.session_id == name)
            connection.execute(row.values({column: True}))
    shadow_scores.write(store, scores)
    kept = {row["session_id"] for row in rows(store, tables.shadow_scores)}
    assert kept == {f"south-{n}" for n in range(5)} | {"north-3", "north-4"}
    erasure.erase(store, ["north-3"], datetime.now(UTC))
    assert "north-3" not in {row["session_id"] for row in rows(store, tables.shadow_scores)}


def test_writing_again_replaces(store: Store) -> None:
    filled(store)
    for level in (0, 2):
        shadow_scores.write(store, shadow_of(store, level))
    found = rows(store, tables.shadow_scores)
    assert {row["expressed"][ER]["level"] for row in found} == {2}
    shadow_scores.write(store, [])


def test_a_later_restriction_deletes_the_shadows_scores(store: Store) -> None:
    filled(store)
    shadow_scores.write(store, shadow_of(store, 1))
    for _ in restricted.remove(store, parse_restrictions({"team:north": ["client"]})):
        pass
    kept = {row["session_id"] for row in rows(store, tables.shadow_scores)}
    assert kept == {f"south-{n}" for n in range(5)}
