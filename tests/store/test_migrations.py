"""Migrations create the tables of ``store.tables`` and can be reverted."""

import ast
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa
from alembic import command
from msgspec import structs

from stream_app.errors import StoreError, StoreUnavailable
from stream_app.store.database import tables
from stream_app.store.stream import schema
from stream_app.store.stream.repository import Store
from stream_app.worker.kafka.broker import free_port
from tests.store.batches import BUNDLE, prepare, process, turn
from tests.store.reading import rows

Opened = Callable[[str], Store]


def table_names(store: Store) -> set[str]:
    return set(sa.inspect(store.engine).get_table_names()) - {"alembic_version"}


def test_migrations_can_be_applied_reverted_and_applied_again(
    empty_url: str, opened: Opened
) -> None:
    store = opened(empty_url)
    assert schema.revisions(store)[0] is None
    schema.upgrade(store)
    current, newest = schema.revisions(store)
    assert current == newest
    command.check(schema.config(store))
    schema.downgrade(store, "base")
    assert table_names(store) == set()
    schema.upgrade(store)
    prepare(store).commit(process([turn()]))
    assert len(rows(store, tables.turns)) == 1


def test_migrations_create_exactly_the_defined_tables(store: Store) -> None:
    inspector = sa.inspect(store.engine)
    assert table_names(store) == set(tables.metadata.tables)
    for name, table in tables.metadata.tables.items():
        columns = {column["name"]: column["nullable"] for column in inspector.get_columns(name)}
        assert columns == {column.name: column.nullable for column in table.columns}
        assert inspector.get_pk_constraint(name)["name"] == table.primary_key.name
        indexes = {index["name"]: index["column_names"] for index in inspector.get_indexes(name)}
        assert indexes == {index.name: list(index.columns.keys()) for index in table.indexes}


def test_upgrade_of_the_newest_schema_changes_nothing(store: Store) -> None:
    store.commit(process([turn()]))
    schema.upgrade(store)
    assert len(rows(store, tables.turns)) == 1


@pytest.mark.parametrize("revision", ["0011", "0044"])
def test_a_schema_between_the_releases_is_refused_and_stays(store: Store, revision: str) -> None:
    with store.transaction() as connection:
        connection.execute(sa.text(f"UPDATE alembic_version SET version_num = '{revision}'"))
    with pytest.raises(StoreError, match=rf"at {revision}, .* with commit [0-9a-f]{{8}} first"):
        schema.upgrade(store)
    assert schema.revisions(store)[0] == revision


@pytest.mark.parametrize("use", [prepare, lambda store: store.commit(process([turn()]))])
def test_missing_tables_are_reported_with_the_command_to_run(
    empty_url: str, opened: Opened, use: Callable[[Store], object]
) -> None:
    with pytest.raises(StoreError, match="rapport db upgrade") as refused:
        use(opened(empty_url))
    assert not isinstance(refused.value, StoreUnavailable)


@pytest.mark.parametrize("table", ["turns", "session_states"])
def test_a_missing_column_is_reported_with_the_command_to_run(store: Store, table: str) -> None:
    column = {"turns": "produced_at", "session_states": "partition"}[table]
    with store.engine.begin() as connection:
        connection.execute(sa.text(f"ALTER TABLE {table} DROP COLUMN {column}"))
    with pytest.raises(StoreError, match="rapport db upgrade") as refused:
        store.commit(process([turn()]))
    assert not isinstance(refused.value, StoreUnavailable)


def test_reading_revisions_of_an_unreachable_server_raises_store_unavailable(
    opened: Opened,
) -> None:
    away = opened(f"postgresql://rapport@127.0.0.1:{free_port()}/rapport")
    with pytest.raises(StoreUnavailable):
        schema.revisions(away)


OLD_ALERT = """
INSERT INTO alerts (
  alert_id, rule, session_id, bundle, state, previous, episode, seq, occurred_at, value, threshold
) VALUES (
  :id, 'low-empathy-risk', 's', :bundle, :state, 'inactive', 1, 3, '2026-01-05 10:00:00+00:00',
  0.8, 0.7
)
"""


def test_alerts_from_before_rules_keep_their_episode(empty_url: str, opened: Opened) -> None:
    """Migrated alerts get the service's episode ids, so that later transitions join them."""
    store = opened(empty_url)
    schema.upgrade(store, "0002")
    with store.engine.begin() as connection:
        for name, state in (("a", "pending"), ("b", "firing")):
            values = {"id": name, "state": state, "bundle": BUNDLE}
            connection.execute(sa.text(OLD_ALERT), values)
    schema.upgrade(store)
    old = rows(store, tables.alerts)
    [alert, *_] = process([turn(0), turn(1)]).alerts
    assert [row["episode_id"] for row in old] == [alert.episode_id] * 2
    assert {(row["severity"], row["rules_digest"], *row["turns"]) for row in old} == {
        ("warning", "")
    }
    assert all(row["labels"] == row["values"] == {} for row in old)
    schema.downgrade(store, "0002")
    with store.engine.connect() as connection:
        kept = connection.execute(sa.text("SELECT alert_id, value FROM alerts ORDER BY alert_id"))
        assert [tuple(row) for row in kept] == [("a", 0.8), ("b", 0.8)]


def test_a_downgrade_deletes_what_the_older_schema_cannot_store(store: Store) -> None:
    result = process([turn(0), turn(1)])
    result.alerts = [structs.replace(result.alerts[0], value=None, threshold=None)]
    store.commit(result)
    schema.downgrade(store, "0002")
    with store.engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM alerts")) == 0


EARLIER_SCORE = """
INSERT INTO session_scores (
  session_id, bundle, status, turns, counsellor_turns, late_turns, withheld_turns,
  low_empathy_risk, predicted_rating, mechanisms
) VALUES ('s', 'earlier-1', 'closed', 8, 4, 0, 0, 0.61, 3.2, '{}')
"""
NEW_COLUMNS = {
    "empathy_index",
    "empathy_low",
    "empathy_high",
    "empathy_percentile",
    "answered_share",
    "missed_opportunities",
    "outcome_risks",
}


def columns_of_scores(store: Store) -> set[str]:
    return {column["name"] for column in sa.inspect(store.engine).get_columns("session_scores")}


def test_scores_from_before_the_empathy_index_keep_their_numbers_and_have_no_index(
    empty_url: str, opened: Opened
) -> None:
    store = opened(empty_url)
    schema.upgrade(store, "0008")
    with store.engine.begin() as connection:
        connection.execute(sa.text(EARLIER_SCORE))
    schema.upgrade(store)
    [row] = rows(store, tables.session_scores)
    assert (row["bundle"], row["turns"], row["low_empathy_risk"]) == ("earlier-1", 8, 0.61)
    assert {name: row[name] for name in NEW_COLUMNS} == dict.fromkeys(NEW_COLUMNS)
    assert "predicted_rating" not in columns_of_scores(store)


def test_downgrading_before_the_empathy_index_keeps_the_other_columns(store: Store) -> None:
    store.commit(process([turn(seq) for seq in range(6)]))
    [new] = rows(store, tables.session_scores)
    assert all(new[name] is not None for name in NEW_COLUMNS)
    schema.downgrade(store, "0008")
    assert columns_of_scores(store) & NEW_COLUMNS == set()
    with store.engine.connect() as connection:
        [old] = connection.execute(sa.text("SELECT * FROM session_scores")).mappings()
    assert (old["session_id"], old["turns"]) == ("s", 6)
    assert old["low_empathy_risk"] == new["low_empathy_risk"]
    assert old["predicted_rating"] is None
    schema.upgrade(store)
    [again] = rows(store, tables.session_scores)
    assert again == {**new, **dict.fromkeys(NEW_COLUMNS)}


def counselling(turns: int) -> list[bytes]:
    return [turn(seq, approach="motivational-interviewing") for seq in range(turns)]


def test_scores_from_before_the_miti_summary_have_none(empty_url: str, opened: Opened) -> None:
    store = opened(empty_url)
    schema.upgrade(store, "0008")
    with store.engine.begin() as connection:
        connection.execute(sa.text(EARLIER_SCORE))
    schema.upgrade(store)
    [row] = rows(store, tables.session_scores)
    assert (row["turns"], row["miti"]) == (8, None)


def test_downgrading_before_the_miti_summary_drops_only_that(store: Store) -> None:
    result = process(counselling(6))
    store.commit(result)
    [new] = rows(store, tables.session_scores)
    assert new["miti"] == msgspec.to_builtins(result.session_scores[0].miti)
    assert new["miti"]["volleys"] == 3
    schema.downgrade(store, "0009")
    assert "miti" not in columns_of_scores(store)
    schema.upgrade(store)
    [again] = rows(store, tables.session_scores)
    assert again == {**new, "miti": None}


def test_sessions_without_an_approach_have_sql_null(store: Store) -> None:
    store.commit(process([*counselling(4), turn(session_id="plain")]))
    with store.engine.connect() as connection:
        query = sa.text("SELECT session_id FROM session_scores WHERE miti IS NOT NULL")
        assert connection.scalars(query).all() == ["s"]


OLD_PERSON = """
INSERT INTO people (name, role, team, created_at)
VALUES (:name, :role, :team, '2026-01-05 10:00:00+00:00')
"""


def test_supervisors_without_a_team_keep_reading_all_teams(empty_url: str, opened: Opened) -> None:
    store = opened(empty_url)
    schema.upgrade(store, "0010")
    with store.engine.begin() as connection:
        for name, role, team in (
            ("pat", "supervisor", None),
            ("sue", "supervisor", "north"),
            ("ana", "analyst", None),
        ):
            values = {"name": name, "role": role, "team": team}
            connection.execute(sa.text(OLD_PERSON), values)
    schema.upgrade(store)
    flags = {row["name"]: row["all_teams"] for row in rows(store, tables.people)}
    assert flags == {"pat": True, "sue": False, "ana": False}


def test_migrations_do_not_import_the_current_tables() -> None:
    scripts = sorted(Path(schema.scripts(), "versions").glob("0*.py"))
    assert len(scripts) >= 10
    imported = {
        (script.name, name)
        for script in scripts
        for node in ast.walk(ast.parse(script.read_text()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert not {item for item in imported if item[1].partition(".")[0] == "stream_app"}
