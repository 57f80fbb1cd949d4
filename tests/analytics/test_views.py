"""The reporting views on both databases: every column, every number, nobody's words."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
import sqlalchemy as sa

from servers.postgres import Server
from stream_app.analytics.views import reference, schema
from stream_app.analytics.views.dialects import DIALECTS
from stream_app.analytics.views.views import all_views
from stream_app.contracts.scores import MECHANISMS
from stream_app.inference.bundles import bundle as bundles
from stream_app.settings import Settings
from stream_app.store.accounts import audit
from stream_app.store.alerts import alert_actions
from stream_app.store.alerts.alerts import ActionKind
from stream_app.store.database import tables
from stream_app.store.database.judgements import Reason
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream import schema as tables_schema
from stream_app.store.stream.repository import Store
from stream_app.store.work import ratings
from tests.store import batches, judging
from tests.store.reading import rows

ROLE = "rapport_reader"
Opened = Callable[[str], Store]


def read(store: Store, query: str) -> list[dict[str, Any]]:
    with store.reading() as connection:
        return [dict(row) for row in connection.exec_driver_sql(query).mappings()]


@pytest.fixture
def filled(store: Store) -> Store:
    judging.fill(store, sessions=2)
    schema.create_views(store)
    return store


def test_every_view_has_the_columns_that_it_is_said_to_have(store: Store) -> None:
    schema.create_views(store, bundles.DEFAULT_BUNDLE)
    manifest = bundles.load(bundles.DEFAULT_BUNDLE).manifest
    fake = {"fake-1-fp32": {"name": "fake"}}
    known = {**fake, manifest.bundle_id: msgspec.to_builtins(manifest)}
    views = all_views(DIALECTS[store.engine.dialect.name], known)
    assert set(sa.inspect(store.engine).get_view_names()) == {view.name for view in views}
    with store.reading() as connection:
        for view in views:
            found = connection.exec_driver_sql(f"SELECT * FROM {view.name}")
            assert list(found.keys()) == [column.name for column in view.columns]
            assert all(column.meaning for column in view.columns)


def test_a_turn_is_there_once_with_its_final_score_and_the_risk_of_its_first(
    filled: Store,
) -> None:
    facts = read(filled, "SELECT * FROM fact_turn ORDER BY session_id, seq")
    stored = {(row["session_id"], row["seq"]): row for row in rows(filled, tables.turns)}
    scores = rows(filled, tables.turn_scores)
    assert len(facts) == len(stored) == 4 * judging.TURNS
    for fact in facts:
        turn = stored[fact["session_id"], fact["seq"]]
        mine = [
            s for s in scores if (s["session_id"], s["seq"]) == (turn["session_id"], turn["seq"])
        ]
        best = next((s for s in mine if s["stage"] == "final"), mine[0])
        assert fact["stage"] == best["stage"] == "final"
        assert {name: fact[name] for name in MECHANISMS} == {n: best[n] for n in MECHANISMS}
        assert fact["words"] == len(turn["text"].split())
        risks = [s["low_empathy_risk"] for s in mine if s["low_empathy_risk"] is not None]
        assert [fact["low_empathy_risk"]] == (risks or [None])
        assert fact["counsellor"] == (turn["speaker"] if turn["role"] == "counsellor" else None)
        if level := best["expressed"].get("interpretations"):
            expected = sum(place * p for place, p in enumerate(level["probabilities"]))
            assert fact["interpretations_expected"] == pytest.approx(expected)


def test_a_provisional_score_stands_in_until_there_is_a_final_one(store: Store) -> None:
    store.commit(batches.process([batches.turn(0), batches.turn(1)]))
    schema.create_views(store)
    assert [r["stage"] for r in read(store, "SELECT stage FROM fact_turn")] == ["provisional"] * 2


def test_what_the_model_abstained_from_is_null(filled: Store) -> None:
    one = (tables.turn_scores.c.session_id == "north-0") & (tables.turn_scores.c.seq == 1)
    with filled.transaction() as connection:
        silent = sa.update(tables.turn_scores).where(one)
        connection.execute(silent.values(abstained=["explorations"]))
    [fact] = read(filled, "SELECT * FROM fact_turn WHERE session_id = 'north-0' AND seq = 1")
    assert (fact["explorations"], fact["empathy_total"]) == (None, None)
    assert fact["interpretations"] is not None
    assert (bool(fact["explorations_abstained"]), fact["abstained"]) == (True, 1)
    assert not fact["interpretations_abstained"]
    [client] = read(filled, "SELECT * FROM fact_turn WHERE session_id = 'north-0' AND seq = 2")
    assert client["explorations_abstained"] is None


def test_a_session_has_its_aggregates_people_and_first_answer(filled: Store) -> None:
    [row] = [r for r in rows(filled, tables.session_scores) if r["session_id"] == "north-0"]
    audit.record(filled, "sue", audit.AuditAction.READ_TRANSCRIPT, "north-0")
    [fact] = read(filled, "SELECT * FROM fact_session WHERE session_id = 'north-0'")
    for name in ("empathy_index", "low_empathy_risk", "answered_share", "talk_share", "turns"):
        assert fact[name] == row[name]
    assert fact["explorations_mean"] == row["mechanisms"]["explorations"]["mean"]
    assert fact["counsellor"] == filled.privacy.pseudonym(judging.NOOR)
    assert fact["client"] == filled.privacy.pseudonym("client of north-0")
    assert (fact["counsellors"], fact["clients"], fact["team"]) == (1, 1, "north")
    assert fact["first_answer_seconds"] == pytest.approx(60.0)
    assert fact["duration_seconds"] == pytest.approx(60.0 * (judging.TURNS - 1))
    assert str(fact["date"]) == "2026-01-05"
    assert fact["first_read_at"] is not None
    others = read(filled, "SELECT first_read_at FROM fact_session WHERE session_id <> 'north-0'")
    assert {row["first_read_at"] for row in others} == {None}


def test_a_predicted_outcome_has_a_column(store: Store) -> None:
    store.commit(batches.process([batches.turn(s, domain="peer-support") for s in range(4)]))
    schema.create_views(store, bundles.DEFAULT_BUNDLE)
    [row], [fact] = rows(store, tables.session_scores), read(store, "SELECT * FROM fact_session")
    assert fact["outcome_risk_chat_failed"] == row["outcome_risks"]["chat_failed"]
    assert fact["outcome_risk_low_mi_quality"] is None


def test_an_alert_is_one_row_with_what_people_said_of_it(filled: Store) -> None:
    alerts = rows(filled, tables.alerts)
    episodes = sorted({row["episode_id"] for row in alerts})
    right, wrong = episodes[:2]
    for episode, reason in (
        (right, Reason.FALSE_ALARM),
        (right, Reason.JUSTIFIED),
        (wrong, Reason.FALSE_ALARM),
        (wrong, Reason.NOT_NOW),
    ):
        kind = ActionKind.ACKNOWLEDGE
        alert_actions.record_action(filled, ALL_SESSIONS, episode, kind, "sue", reason, "a note")
    facts = {row["episode_id"]: row for row in read(filled, "SELECT * FROM fact_alert")}
    assert sorted(facts) == episodes
    assert (facts[right]["judgement"], bool(facts[right]["justified"])) == ("justified", True)
    assert (facts[wrong]["judgement"], bool(facts[wrong]["justified"])) == ("false-alarm", False)
    assert all(facts[episode]["justified"] is None for episode in episodes[2:])
    fired = {r["episode_id"]: r for r in alerts if r["state"] == "firing"}
    for episode, fact in facts.items():
        assert fact["value"] == fired[episode]["value"]
        assert (fact["acknowledged_at"] is None) == (episode not in (right, wrong))
    first = [row["at"] for row in rows(filled, tables.alert_actions) if row["episode_id"] == right]
    waited = (min(first) - fired[right]["occurred_at"]).total_seconds()
    assert facts[right]["acknowledge_seconds"] == pytest.approx(waited, abs=0.01)


def test_ratings_name_their_raters_by_number(filled: Store) -> None:
    for name in ("sue", "ann"):
        judging.supervisor(filled, name, None)
        ratings.rate(
            filled,
            ALL_SESSIONS,
            name,
            [
                ratings.Judgement("north-0", 1, "explorations", 2),
                ratings.Judgement("north-0", None, "rating", 4),
            ],
        )
    facts = read(filled, "SELECT * FROM fact_rating ORDER BY rater, head")
    assert [(row["rater"], row["head"], row["value"]) for row in facts] == [
        (1, "explorations", 2),
        (1, "rating", 4),
        (2, "explorations", 2),
        (2, "rating", 4),
    ]
    assert facts[0]["counsellor"] == filled.privacy.pseudonym(judging.NOOR)
    assert not any(row["blind"] for row in facts)


def test_outcomes_are_facts_of_their_own(filled: Store) -> None:
    states = filled.load_states(["north-0"], batches.BUNDLE)
    filled.commit(batches.process([batches.outcome(session_id="north-0")], states))
    [fact] = read(filled, "SELECT * FROM fact_outcome")
    assert (fact["kind"], fact["value"], fact["session_id"]) == ("rating", 4.0, "north-0")


def test_counsellors_have_the_date_of_their_first_session(store: Store) -> None:
    for number, day in enumerate(("2025-12-31", "2026-02-01")):
        events = [
            batches.turn(
                seq,
                session_id=f"s{number}",
                team=f"team {number}",
                speaker_id="noor" if seq % 2 else "c",
                occurred_at=f"{day}T23:59:0{seq}Z",
            )
            for seq in range(4)
        ]
        store.commit(batches.process(events))
    schema.create_views(store)
    [who] = read(store, "SELECT * FROM dim_counsellor")
    assert who["counsellor"] == store.privacy.pseudonym("noor")
    assert (str(who["joined_on"]), who["cohort"], who["sessions"]) == ("2025-12-31", 2025, 2)
    assert who["team"] == "team 1"
    assert [row["team"] for row in read(store, "SELECT team FROM dim_team ORDER BY 1")] == [
        "team 0",
        "team 1",
    ]


def test_the_calendar_counts_weeks_as_iso_does(store: Store) -> None:
    schema.create_views(store)
    dates = {str(row["date"]): row for row in read(store, "SELECT * FROM dim_date")}
    assert len(dates) == 18263
    for day in ("2000-01-01", "2020-12-31", "2021-01-03", "2024-12-30", "2026-06-15"):
        when, found = datetime.fromisoformat(day), dates[day]
        assert (found["isoyear"], found["week"], found["weekday"]) == tuple(when.isocalendar())
        assert (found["year"], found["month"]) == (when.year, when.month)
        assert found["quarter"] == (when.month + 2) // 3
        monday = when.date() - timedelta(days=when.weekday())
        assert str(found["monday"]) == monday.isoformat()


def new_head(store: Store, name: str, labels: list[str], kind: str = "categorical") -> None:
    """A bundle with a head that no other has."""
    head = {"name": name, "dimension": "expressed", "kind": kind, "labels": labels}
    manifest = {"name": "new", "heads": [{**head, "roles": ["counsellor"]}]}
    store.prepare(f"new-{name}"[:100], "1" * 64, manifest, True)


def test_a_bundle_with_another_head_gives_it_columns(filled: Store) -> None:
    assert schema.are_current(filled)
    new_head(filled, "warm tone", ["cold", "warm (very)"])
    assert not schema.are_current(filled)
    made = schema.create_views(filled)
    assert schema.are_current(filled)
    assert made.views == len(sa.inspect(filled.engine).get_view_names())
    said = {"warm tone": {"cold": 0.25, "warm (very)": 0.75}}
    with filled.transaction() as connection:
        query = sa.update(tables.turn_scores).where(tables.turn_scores.c.seq == 1)
        connection.execute(query.values(expressed=said))
    found = read(filled, "SELECT * FROM fact_turn WHERE seq = 1")
    assert {row["expressed_warm_tone_warm_very"] for row in found} == {0.75}
    listed = read(filled, "SELECT * FROM dim_head WHERE head = 'warm tone' AND label IS NOT NULL")
    assert {(row["label"], row["column_name"]) for row in listed} == {
        ("cold", "expressed_warm_tone_cold"),
        ("warm (very)", "expressed_warm_tone_warm_very"),
    }


def test_names_that_sql_cannot_hold_do_not_collide(store: Store) -> None:
    long = "a" * 80
    new_head(store, 'o\'clock "x"', [f"{long}1", f"{long}2", "it's", "its", "it s"])
    schema.create_views(store)
    columns = {column["name"] for column in sa.inspect(store.engine).get_columns("fact_turn")}
    mine = {name for name in columns if name.startswith("expressed_o_clock_x")}
    assert len(mine) == 6
    assert all(len(name) <= 63 for name in mine)


def test_the_views_have_no_text_and_no_names(filled: Store) -> None:
    judging.supervisor(filled, "sue@example.org", None)
    given = [ratings.Judgement("north-0", 1, "explorations", 2)]
    ratings.rate(filled, ALL_SESSIONS, "sue@example.org", given)
    episode = rows(filled, tables.alerts)[0]["episode_id"]
    kind = ActionKind.ACKNOWLEDGE
    alert_actions.record_action(
        filled, ALL_SESSIONS, episode, kind, "sue@example.org", None, "a zebra"
    )
    seen = ""
    for view in sa.inspect(filled.engine).get_view_names():
        seen += repr(read(filled, f"SELECT * FROM {view}"))
    assert "north-0" in seen
    for secret in ("sue@example.org", judging.NOOR, "That must have been hard", "zebra"):
        assert secret not in seen


def test_an_upgrade_finds_no_view_in_its_way_and_a_downgrade_takes_them(
    empty_url: str, opened: Opened
) -> None:
    store = opened(empty_url)
    assert schema.upgrade(store, bundles.DEFAULT_BUNDLE).views > 0
    before = sa.inspect(store.engine).get_view_names()
    schema.upgrade(store, bundles.DEFAULT_BUNDLE)
    assert sorted(sa.inspect(store.engine).get_view_names()) == sorted(before)
    tables_schema.downgrade(store, "0010")
    assert sa.inspect(store.engine).get_view_names() == []


def test_the_document_has_the_columns_as_they_are() -> None:
    text = reference.DOCUMENT.read_text("utf-8")
    assert reference.document(text) == text, "run python -m stream_app.analytics.views.reference"


class TestReadingRoles:
    """PostgreSQL's roles: what they may read, and what not."""

    @pytest.fixture
    def url(self, server: Server) -> str:
        return server.new_database()

    @pytest.fixture
    def store(self, url: str, opened: Opened) -> Store:
        store = opened(url)
        assert schema.upgrade(store).lacking_roles == []
        return store

    def may(self, url: str, role: str, query: str) -> bool:
        with psycopg.connect(url) as connection:
            connection.execute(f"SET ROLE {role}")  # type: ignore[call-overload]
            try:
                connection.execute(query)  # type: ignore[call-overload]
            except psycopg.errors.InsufficientPrivilege:
                return False
            return True

    def test_the_reader_may_read_the_views_and_nothing_else(self, store: Store, url: str) -> None:
        for view in sa.inspect(store.engine).get_view_names():
            assert self.may(url, ROLE, f"SELECT * FROM {view}")
        for table in tables.metadata.tables:
            assert not self.may(url, ROLE, f"SELECT * FROM {table}")
        assert not self.may(url, ROLE, "CREATE TABLE mine (x integer)")

    def test_the_other_role_may_read_of_no_single_person(self, store: Store, url: str) -> None:
        role = f"{ROLE}_aggregates"
        assert self.may(url, role, "SELECT * FROM dim_bundle")
        for view in sa.inspect(store.engine).get_view_names():
            if view.startswith("fact_") or view in {"dim_counsellor", "dim_team"}:
                assert not self.may(url, role, f"SELECT * FROM {view}")

    def test_an_account_that_may_not_create_roles_migrates_without_them(
        self, server: Server, url: str, opened: Opened
    ) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP ROLE IF EXISTS modest")
            connection.execute("CREATE ROLE modest LOGIN")
            connection.execute("GRANT CREATE ON SCHEMA public TO modest")
            found = connection.execute("SELECT rolname FROM pg_roles WHERE rolname ~ %s", [ROLE])
            known = [name for (name,) in found]
            for name in known:  # of the whole server: other tests' databases use them
                connection.execute(f"ALTER ROLE {name} RENAME TO other_{name}")  # type: ignore[call-overload]
        store = opened(url.replace("rapport@", "modest@"))
        try:
            made = schema.upgrade(store)
            assert made.lacking_roles == [ROLE, f"{ROLE}_aggregates"]
            current, newest = tables_schema.revisions(store)
            assert current == newest
        finally:
            store.close()
            server.drop(url)
            with psycopg.connect(server.url(), autocommit=True) as connection:
                connection.execute("DROP ROLE modest")
                for name in known:
                    connection.execute(f"ALTER ROLE other_{name} RENAME TO {name}")  # type: ignore[call-overload]


def test_a_replica_is_read_where_one_is_named(tmp_path: Path) -> None:
    from stream_app import bootstrap  # noqa: PLC0415

    main, replica = f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"
    settings = Settings(database_url=main)  # type: ignore[arg-type]
    assert str(bootstrap.read_store(settings).engine.url.database).endswith("a.db")
    settings = Settings(database_url=main, database_read_url=replica)  # type: ignore[arg-type]
    assert str(bootstrap.read_store(settings).engine.url.database).endswith("b.db")
